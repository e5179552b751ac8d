"""`regard classify`, and `train` and `evaluate` of a classifier, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.run import Inside, refused
from tests.training import toy_labels as toy

SETTINGS = [part for key, value in toy.TINY.items() for part in ("--set", f"{key}={value}")]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import regard

    folder = tmp_path_factory.mktemp("classify")
    (folder / "texts.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in toy.TEXTS))
    regard.train(folder / "texts.tsv", folder / "model", task="classify", settings=toy.TINY, device="cpu")
    return folder


def test_train_by_the_command(here: Path, tmp_path: Path, inside: Inside) -> None:
    done = inside("train", here / "texts.tsv", "--task", "classify", "--out", tmp_path / "m", *SETTINGS)
    assert done.returncode == 0 and done.stdout == ""
    assert "texts for training" in done.stderr and "good " in done.stderr and "accuracy" in done.stderr
    assert f"now: regard classify {tmp_path / 'm'}" in done.stderr.replace("\n", "")


def test_a_line_for_every_line(here: Path, inside: Inside) -> None:
    done = inside("classify", here / "model", stdin=b"The film is gripping.\n\nHer play is boring.\n")
    assert done.returncode == 0 and done.stdout == "good\n\nbad\n" and done.stderr == ""
    assert inside("classify", here / "model", "It is lovely.", "It is clumsy.").stdout == "good\nbad\n"


def test_probabilities_and_json(here: Path, tmp_path: Path, inside: Inside) -> None:
    given = tmp_path / "lines.txt"
    given.write_text("The film is gripping.\n\n")
    done = inside("classify", here / "model", "-i", given, "-p", "-o", tmp_path / "out.txt")
    assert done.returncode == 0 and done.stdout == ""
    first, second = (tmp_path / "out.txt").read_text().split("\n")[:2]
    label, fraction, other, rest = first.split("\t")
    assert (label, other, second) == ("good", "bad", "") and float(fraction) + float(rest) == pytest.approx(1, abs=1e-3)
    rows = [json.loads(line) for line in inside("classify", here / "model", "-i", given, "--json").stdout.splitlines()]
    assert rows[0]["label"] == "good" and rows[1]["label"] is None
    assert rows[0]["probabilities"]["good"] == pytest.approx(float(fraction), abs=1e-4)
    calibrated = inside("classify", here / "model", "-i", given, "--json", "--calibrated").stdout.splitlines()
    assert json.loads(calibrated[0])["probabilities"] != rows[0]["probabilities"]


@pytest.mark.parametrize("ending", ["svg", "html", "json", "png"])
def test_every_view(here: Path, tmp_path: Path, inside: Inside, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    text = "The film is gripping. " + "It goes on and on. " * (1 if ending == "json" else 120)
    more = ["--evidence"] if ending == "json" else []
    done = inside("classify", here / "model", text, "--look", path, *more)
    assert done.returncode == 0 and done.stdout == "good\n" and f"written: {path}" in done.stderr
    if ending != "png":
        assert "gripping" in path.read_text()
    if ending == "json":
        shown = inside("look", path).stdout
        assert "gripping█" in shown and "looked at most: gripping" in shown and "agreement with leave one out" in shown
        assert inside("look", path, "--view", "grid").returncode == 0


def test_how_it_learned(here: Path, tmp_path: Path, inside: Inside) -> None:
    done = inside("look", here / "model", "--history", "-o", tmp_path / "history.html")
    assert done.returncode == 0 and "written" in done.stderr and (tmp_path / "history.html").stat().st_size > 10_000


def test_in_the_terminal(here: Path, inside: Inside) -> None:
    done = inside("classify", here / "model", "The film is gripping, they say.", "--look", "terminal")
    assert done.stdout.startswith("good\n\ngood ") and "gripping█" in done.stdout


def test_evaluate(here: Path, tmp_path: Path, inside: Inside) -> None:
    done = inside("evaluate", here / "model", here / "texts.tsv")
    assert done.returncode == 0 and "macro-F1" in done.stdout and "confusion matrix" in done.stdout
    report = json.loads(inside("evaluate", here / "model", here / "texts.tsv", "--json", "--calibrated").stdout)
    assert report["texts"] == len(toy.TEXTS) and sum(map(sum, report["confusion"])) == len(toy.TEXTS)
    broken = tmp_path / "broken.tsv"
    broken.write_text("no label here\n")
    assert "line 1 is no labelled text" in refused(inside("evaluate", here / "model", broken))
    assert "for translators" in refused(inside("evaluate", here / "model", here / "texts.tsv", "--beam", "3"))


def test_mistakes(here: Path, tmp_path: Path, inside: Inside) -> None:
    assert "expected a translator" in refused(inside("translate", here / "model", "x"))
    assert "view: expected grid or links or text" in refused(
        inside("classify", here / "model", "x", "--look", "terminal", "--view", "tree")
    )
    assert "expected texts or --input" in refused(inside("classify", here / "model", "x", "-i", here / "texts.tsv"))
    asked = ["classify", here / "model", "x", "--json", "--look", "terminal"]
    assert "both write on standard output" in refused(inside(*asked))
    assert inside(*asked, "-o", tmp_path / "out.jsonl").stdout.strip()
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1
    assert "expected the folder of a model" in refused(inside("classify", tmp_path / "none", "x"))
