"""`regard translate`."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import regard as package
from tests.commands.run import SOURCES, Inside, refused, regard


def test_arguments_a_file_and_standard_input_give_the_same(files: Path, tmp_path: Path, inside: Inside) -> None:
    texts = [SOURCES[0], "", SOURCES[1], "   ", "unseen: 漢字 😀", SOURCES[2]]
    expected = package.load(files / "model", "cpu").translate(texts)
    assert expected[1] == expected[3] == ""
    lines = "".join(text + "\n" for text in expected)
    data = "".join(text + "\n" for text in texts).encode()
    (tmp_path / "in.txt").write_bytes(data)
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(data))
    first = inside("translate", files / "model", "--quiet", *texts)
    assert (first.returncode, first.stdout, first.stderr) == (0, lines, "")
    assert regard("translate", files / "model", stdin=data).stdout == lines
    assert inside("translate", files / "model", "-i", tmp_path / "in.txt").stdout == lines
    done = inside("translate", files / "model", "-i", tmp_path / "in.txt.gz", "-o", tmp_path / "out.txt")
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == lines
    assert not list(tmp_path.glob("*.new"))


def test_exactly_one_line_for_each_line_in_utf_8_everywhere(files: Path) -> None:
    locale = {"LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    texts = ["a\u2028b", "a\x85b", "a\rb", "राहुल\x0bx", "", "\ufeffx", "last, without an end"]
    data = "\n".join(texts).encode()
    done = regard("translate", files / "model", "--quiet", stdin=data, environment=locale)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.count("\n") == len(texts) and done.stdout.endswith("\n")
    assert done.stdout.split("\n")[4] == ""


def test_sampled_bytes_make_no_lines(files: Path, inside: Inside) -> None:
    """A model that has learned little says any bytes, line ends among them."""
    data = "".join(source + "\n" for source in SOURCES).encode()
    done = inside("translate", files / "model", "--sample", "--temperature", "50", "--seed", "1", "-q", stdin=data)
    assert done.returncode == 0 and done.stdout.count("\n") == len(SOURCES)


def test_windows_line_ends_and_no_input(files: Path, inside: Inside) -> None:
    (one,) = package.load(files / "model", "cpu").translate([SOURCES[0]])
    assert inside("translate", files / "model", stdin=f"{SOURCES[0]}\r\n".encode()).stdout == one + "\n"
    done = inside("translate", files / "model", stdin=b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_json_is_one_object_a_line(files: Path, inside: Inside) -> None:
    done = inside("translate", files / "model", "--json", "--n-best", "3", SOURCES[0], "", " ".join(SOURCES[:5]))
    first, empty, long = (json.loads(line) for line in done.stdout.splitlines())
    assert first["source"] == SOURCES[0] and len(first["translations"]) == 3
    assert first["translations"][0].keys() == {"text", "score", "log_probability"}
    assert empty["source"] == "" and empty["translations"][0]["text"] == ""
    assert "in 5 parts" in long["notices"][0] and "in 5 parts" in done.stderr
    scores = [each["score"] for each in first["translations"]]
    assert scores == sorted(scores, reverse=True)


def test_n_best_is_rank_score_text(files: Path, inside: Inside) -> None:
    done = inside("translate", files / "model", "--n-best", "3", "--beam", "4", *SOURCES[:2])
    rows = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
    assert [row[0] for row in rows] == ["1", "2", "3"] * 2 and all(len(row) == 3 for row in rows)
    assert all(float(row[1]) <= 0 for row in rows)


def test_notices_go_to_standard_error_and_quiet_leaves_them_out(files: Path, inside: Inside) -> None:
    text = " ".join(SOURCES[:5])
    done = inside("translate", files / "model", text)
    assert done.stdout.count("\n") == 1 and done.stderr.startswith("regard: ") and done.stderr.count("\n") == 1
    assert inside("translate", files / "model", "--quiet", text).stderr == ""


def test_sampling_follows_its_seed(files: Path, inside: Inside) -> None:
    drawn = [inside("translate", files / "model", "--sample", "--seed", seed, *SOURCES[:5]).stdout for seed in "112"]
    assert drawn[0] == drawn[1] != drawn[2]


def test_minimum_risk_follows_its_seed(files: Path, inside: Inside) -> None:
    given = ["--mbr", "6", "--n-best", "4", *SOURCES[:5]]
    drawn = [inside("translate", files / "model", "--seed", seed, *given).stdout for seed in "112"]
    assert drawn[0] == drawn[1] != drawn[2] and len(drawn[0].splitlines()) == 20
    assert (
        inside("translate", files / "model", "--mbr", "0", SOURCES[0]).stdout
        == inside("translate", files / "model", SOURCES[0]).stdout
    )
    assert "chrF++" in inside("evaluate", files / "model", files / "pairs.tsv", "--mbr", "2").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["NOWHERE", "text"], "nowhere"),
        (["PAIRS", "text"], "found a file"),
        (["MODEL", "text", "-i", "PAIRS"], "texts or --input"),
        (["MODEL", "-i", "NOWHERE"], "nowhere"),
        (["MODEL", "-i", "BYTES"], "bytes.txt, line 2 is not UTF-8"),
        (["MODEL", "text", "-o", "PAIRS/out.txt"], "pairs.tsv"),
        (["MODEL", "text", "-o", "/proc/out.txt"], "/proc/out.txt"),
        (["MODEL", "text", "--precision", "fp8"], "precision: expected auto, fp32 or bf16"),
        (["MODEL", "text", "--device", "foo"], "device"),
        (["MODEL", "text", "--device", "cuda:99"], "device"),
        (["MODEL", "text", "--beam", "2", "--n-best", "3"], "n_best"),
        (["MODEL", "text", "--look", "telescope"], "look: expected terminal or a file"),
        (["MODEL", "text", "--look", "NOWHERE/a.svg"], "expected a folder that is there"),
        (["MODEL", "text", "--look", "a.png", "--view", "sky"], "got 'sky'"),
        (["MODEL", "text", "--evidence"], "expected --look"),
        (["MODEL", "text", "--sample", "--temperature", "0"], "temperature"),
        (["MODEL", "text", "--sample", "--temperature", "inf"], "temperature"),
        (["MODEL", "text", "--length-penalty", "nan"], "length"),
    ],
)
def test_a_mistake_in_translate_is_one_line(
    arguments: list[str], message: str, files: Path, tmp_path: Path, inside: Inside
) -> None:
    (tmp_path / "bytes.txt").write_bytes(b"good\n\xff\xfe\n")
    names = {"MODEL": files / "model", "PAIRS": files / "pairs.tsv", "NOWHERE": tmp_path / "nowhere"}
    names["BYTES"] = tmp_path / "bytes.txt"
    given = [str(names.get(each, each)).replace("PAIRS/", f"{names['PAIRS']}/") for each in arguments]
    assert message in refused(inside("translate", *given))


def test_an_argument_that_is_no_utf_8_is_one_line_or_an_answer(files: Path) -> None:
    command = [sys.executable.encode(), b"-m", b"regard", b"translate", os.fsencode(files / "model"), b"a \xff b"]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0 or (done.returncode == 2 and done.stderr.startswith(b"regard: "))


def test_an_output_file_that_fails_keeps_the_old_one(files: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "bytes.txt").write_bytes(b"good\n\xff\xfe\n")
    (tmp_path / "out.txt").write_text("old")
    refused(inside("translate", files / "model", "-i", tmp_path / "bytes.txt", "-o", tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bytes.txt", "out.txt"]


def test_a_reader_that_goes_away_is_no_traceback(files: Path) -> None:
    command = f"yes 'The boy sees a mango.' | head -2000 | {sys.executable} -m regard translate {files / 'model'}"
    done = subprocess.run(["bash", "-c", f"{command} --beam 1 | head -1"], capture_output=True, timeout=120)
    assert done.stdout.count(b"\n") == 1 and done.stderr == b""


def test_a_glossary(files: Path, tmp_path: Path, inside: Inside) -> None:
    word = SOURCES[0].split()[0]
    (tmp_path / "terms.tsv").write_text(f"{word}\tzebra\n", encoding="utf-8")
    done = inside("translate", files / "model", SOURCES[0], "--glossary", tmp_path / "terms.tsv", "--json", "-q")
    (translation,) = json.loads(done.stdout)["translations"]
    assert "zebra" in translation["text"].lower()
    assert [term["source"] for term in translation["terms"]] == [word]
    (tmp_path / "bad.tsv").write_text("word\n", encoding="utf-8")
    for given, complaint in (
        (["--glossary", tmp_path / "none.tsv"], "cannot read"),
        (["--sample", "--glossary", tmp_path / "terms.tsv"], "--sample: no effect here"),
        (["--glossary", tmp_path / "bad.tsv"], "line 1: expected a source term"),
    ):
        assert complaint in refused(inside("translate", files / "model", "a", *given))
