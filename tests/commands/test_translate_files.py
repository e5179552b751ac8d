"""`regard translate --keep`, and whole files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.run import Inside, refused
from tests.text.formats.drawn_files import SAMPLES, same_skeleton

COLUMNS = {"csv": ["--columns", "text"]}


def test_kept_things_come_back(files: Path, inside: Inside) -> None:
    text = "<b>The boy</b> sees 573 {x} at me@x.org."
    done = inside("translate", files / "model", "-q", text, "--keep", "numbers,addresses,markup")
    assert done.returncode == 0
    assert all(done.stdout.count(thing) == 1 for thing in ("<b>", "</b>", "573", "{x}", "me@x.org"))
    done = inside(
        "translate", files / "model", "-q", "Order AB-12 now", "--keep", "names", "--keep", "re:[A-Z]+-[0-9]+"
    )
    assert done.stdout.count("AB-12") == 1
    done = inside("translate", files / "model", "-q", text, "--keep", "markup", "--json", "--n-best", "2")
    record = json.loads(done.stdout)
    assert record["source"] == text and all("<b>" in each["text"] for each in record["translations"])


@pytest.mark.parametrize("name", SAMPLES)
def test_whole_files(name: str, files: Path, tmp_path: Path, inside: Inside) -> None:
    path, out = tmp_path / f"in.{name}", tmp_path / f"out.{name}"
    path.write_bytes(SAMPLES[name].encode())
    arguments = ["translate", files / "model", "-q", "-i", path, *COLUMNS.get(name, [])]
    done = inside(*arguments, "-o", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = out.read_bytes().decode()
    assert text != SAMPLES[name] and same_skeleton(name, SAMPLES[name], text)
    assert inside(*arguments).stdout == text


def test_windows_line_ends_stay(files: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "a.html").write_bytes(b"<p>The boy sees a mango.</p>\r\n\r\n")
    done = inside("translate", files / "model", "-q", "-i", tmp_path / "a.html", "-o", tmp_path / "b.html")
    assert done.returncode == 0 and (tmp_path / "b.html").read_bytes().endswith(b"</p>\r\n\r\n")


def test_files_that_cannot_be_read_are_refused_and_nothing_is_written(
    files: Path, tmp_path: Path, inside: Inside
) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "a.csv").write_text("id,words\n1,a\n")
    model, out = files / "model", tmp_path / "out"
    for name, message in {
        "a.json": "a.json: line 1: expected JSON",
        "a.csv": "columns: expected some of 'id', 'words'",
        "no.html": "expected a file, and there is none",
    }.items():
        assert message in refused(inside("translate", model, "-i", tmp_path / name, "-o", out))
    assert not out.exists()


def test_options_without_effect_are_refused(files: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "a.md").write_text("x\n")
    whole = ["translate", files / "model", "-i", tmp_path / "a.md"]
    for option in (["--json"], ["--n-best", "2"], ["--prefix", "x"]):
        assert f"{option[0]}: no effect here; expected it without a whole file" in refused(inside(*whole, *option))
    assert "--columns: no effect here; expected --input FILE.csv" in refused(inside(*whole, "--columns", "x"))
    assert "keep: expected some of numbers" in refused(inside("translate", files / "model", "x", "--keep", "all"))
    looking = ["--keep", "names", "--look", "terminal", "--evidence"]
    assert "--evidence: no effect here" in refused(inside("translate", files / "model", "x", *looking))
