"""`--look`, `regard look` and `evaluate --diagnose` as a user runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import regard as package
from regard.look.trace_files import read
from tests.commands.run import SOURCES, Inside, refused


def test_look_shows_a_grid(files: Path, inside: Inside) -> None:
    done = inside("translate", files / "model", "--look", "terminal", SOURCES[0])
    lines = done.stdout.split("\n")
    assert lines[0] == package.load(files / "model", "cpu").translate(SOURCES[0])
    assert all(word in done.stdout for word in SOURCES[0].rstrip(".").split()) and "⏹" in done.stdout


@pytest.mark.parametrize("ending", ["html", "svg", "json"])
def test_look_writes_a_file_for_all_texts(ending: str, files: Path, tmp_path: Path, inside: Inside) -> None:
    done = inside("translate", files / "model", "--look", tmp_path / f"a.{ending}", SOURCES[0], "", SOURCES[1])
    assert done.returncode == 0 and done.stdout.count("\n") == 3, done.stderr
    names = ["a-1.svg", "a-2.svg"] if ending == "svg" else [f"a.{ending}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for number, name in enumerate(names):
        assert SOURCES[number].split()[1] in (tmp_path / name).read_text(encoding="utf-8")
    assert done.stderr == "".join(f"regard: written: {tmp_path / name}\n" for name in names)


def test_several_looks_at_once(files: Path, tmp_path: Path, inside: Inside) -> None:
    wanted = [tmp_path / "a.html", tmp_path / "a.json"]
    looks = [part for look in ("terminal", *wanted, wanted[0]) for part in ("--look", look)]
    done = inside("translate", files / "model", *looks, SOURCES[0])
    assert done.returncode == 0 and "⏹" in done.stdout
    assert sorted(tmp_path.iterdir()) == wanted
    assert done.stderr == "".join(f"regard: written: {path}\n" for path in wanted)


def test_a_file_that_cannot_be_written_costs_no_other(files: Path, tmp_path: Path, inside: Inside) -> None:
    taken, page = tmp_path / "a.json", tmp_path / "a.html"
    taken.symlink_to("/dev/full")
    done = inside("translate", files / "model", "--look", taken, "--look", page, SOURCES[0])
    written, why = done.stderr.splitlines()
    assert done.returncode == 2 and written == f"regard: written: {page}" and page.is_file()
    assert why == "regard: No space left on device"


def test_a_file_that_cannot_be_written_is_refused_before_any_work(files: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "a.json").mkdir()
    done = inside(
        "translate", files / "model", "--look", tmp_path / "a.json", "--look", tmp_path / "a.html", SOURCES[0]
    )
    assert "a.json: expected a file to write, got a folder" in refused(done)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_json_and_a_grid_do_not_share_the_screen(files: Path, tmp_path: Path, inside: Inside) -> None:
    asked = ["translate", files / "model", "--json", "--look", tmp_path / "a.svg", "--look", "terminal", SOURCES[0]]
    assert "both write on standard output" in refused(inside(*asked))
    done = inside(*asked, "-o", tmp_path / "out.jsonl")
    assert "⏹" in done.stdout and json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8"))


def test_nothing_to_look_at(files: Path, tmp_path: Path, inside: Inside) -> None:
    done = inside("translate", files / "model", "--look", tmp_path / "a.svg", "")
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "regard: no text came to look at\n")
    assert not list(tmp_path.iterdir())


def test_traces_that_were_kept_are_looked_at_without_the_model(files: Path, tmp_path: Path, inside: Inside) -> None:
    shown = inside("translate", files / "model", "--look", "terminal", *SOURCES[:2]).stdout
    inside("translate", files / "model", "--look", tmp_path / "t.json", "--evidence", *SOURCES[:2])
    result = read(tmp_path / "t.json")
    assert [trace.source.text for trace in result] == SOURCES[:2]
    assert all(trace.steps and len(trace.candidates) == 5 and len(trace.evidence) == 2 for trace in result)
    again = inside("look", tmp_path / "t.json").stdout
    numbers = [re.findall(r"\d\.\d\d(?!\d)", text) for text in (shown, re.sub("agreement.*", "", again))]
    assert numbers[0] == numbers[1] and "agreement" in again
    for name in ("p.html", "g.svg", "again.json"):
        assert inside("look", tmp_path / "t.json", "-o", tmp_path / name).returncode == 0
    assert (tmp_path / "again.json").read_text() == (tmp_path / "t.json").read_text()


def test_how_a_model_learned_is_a_page(files: Path, tmp_path: Path, inside: Inside) -> None:
    done = inside("look", files / "model", "--history", "-o", tmp_path / "h.html")
    assert done.returncode == 0 and "written: " in done.stderr
    assert (tmp_path / "h.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["NOWHERE"], "nowhere"),
        (["MODEL"], "--history shows"),
        (["PAIRS"], "expected traces as JSON"),
        (["PAIRS", "--history"], "got a file"),
        (["NOWHERE", "--history"], "expected the folder of a model with --history, and there is none"),
        (["MODEL", "--history", "-o", "NOWHERE/h.html"], "expected a folder that is there"),
        (["MODEL", "--history", "-o", "h.svg"], "expected a .html file"),
        (["PAIRS", "-o", "x.gif"], "got 'x.gif'"),
        (["PAIRS", "-o", "x.svg", "--view", "sky"], "got 'sky'"),
    ],
)
def test_a_mistake_in_look_is_one_line(
    arguments: list[str],
    message: str,
    files: Path,
    tmp_path: Path,
    inside: Inside,
) -> None:
    names = {"MODEL": files / "model", "PAIRS": files / "pairs.tsv", "NOWHERE": tmp_path / "nowhere"}
    assert message in refused(
        inside(
            "look", *(str(names.get(each, each)).replace("NOWHERE", str(tmp_path / "nowhere")) for each in arguments)
        )
    )


def test_the_file_of_a_stranger_cannot_write_to_the_terminal(files: Path, tmp_path: Path, inside: Inside) -> None:
    inside("translate", files / "model", "--look", tmp_path / "t.json", SOURCES[0])
    report = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    report["source"]["text"] = "\x1b[2J" + report["source"]["text"][4:]
    (tmp_path / "t.json").write_text(json.dumps(report), encoding="utf-8")
    done = inside("look", tmp_path / "t.json")
    assert done.returncode == 0 and "\x1b" not in done.stdout and done.stdout.startswith("␛[2J")


def test_evaluate_says_that_nothing_is_odd_or_nothing_came(files: Path, tmp_path: Path, inside: Inside) -> None:
    report = inside("evaluate", files / "model", files / "pairs.tsv", "--diagnose", "repeated").stdout
    counted = int(re.search(r"repeated +(\d+) ", report)[1])  # type: ignore[index]
    assert sum(line.count("\t") == 2 for line in report.split("\n")) == min(counted, 20)
    assert ("none is odd by repeated" in report) == (counted == 0)
    (tmp_path / "empty.tsv").write_text("\tx\n", encoding="utf-8")
    done = inside("evaluate", files / "model", tmp_path / "empty.tsv", "--diagnose", "missed")
    assert done.returncode == 0 and "BLEU" in done.stdout and "no text came to diagnose" in done.stdout
    report = inside("evaluate", files / "model", tmp_path / "empty.tsv", "--diagnose", "missed", "--json").stdout
    assert json.loads(report)["diagnosis"] == {"overall": None, "sentences": []}


def test_evaluate_sorts_by_what_is_odd(files: Path, inside: Inside) -> None:
    done = inside("evaluate", files / "model", files / "pairs.tsv", "--diagnose", "entropy", "--show", "7")
    rows = [line.split("\t") for line in done.stdout.split("\n") if line.count("\t") == 2]
    assert len(rows) == 7 and {row[1] for row in rows} <= set(SOURCES)
    assert [float(row[0]) for row in rows] == sorted((float(row[0]) for row in rows), reverse=True)
    report = json.loads(
        inside("evaluate", files / "model", files / "pairs.tsv", "--diagnose", "missed", "--json").stdout
    )
    sentences = report["diagnosis"]["sentences"]
    assert len(sentences) == len(set(SOURCES)) == report["diagnosis"]["overall"]["traces"]
    counts = [len(each["missed"]) for each in sentences]
    assert counts == sorted(counts, reverse=True)
