"""`regard tune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
from tests.commands.run import Inside, refused

BRIEF = ["--set", "training.epochs=1", "--set", "training.validations=1", "--device", "cpu", "--threads", "1"]


def test_tune_prints_scores_before_and_after(files: Path, tmp_path: Path, inside: Inside) -> None:
    command = (
        "tune",
        files / "model",
        files / "pairs.tsv",
        "--out",
        tmp_path / "new",
        "--old-dev",
        files / "pairs.tsv",
    )
    done = inside(*command, *BRIEF)
    assert done.returncode == 0, done.stderr
    new, old = done.stdout.splitlines()
    assert new.startswith("new dev  chrF++  before ") and old.startswith("old dev  chrF++  before ")
    assert "80 old examples for validation" in done.stderr and "now: regard translate" in done.stderr
    again = inside(*command, *BRIEF, "--resume", "--json", "--quiet")
    entry = json.loads(again.stdout)
    assert again.stderr == "" and set(entry["new_dev"]) == {"before", "after"} and entry["name"] == str(files / "model")
    card = regard.load(tmp_path / "new", "cpu").card
    assert card["tuned_from"] == entry and card["languages"] == ["en", "mr"]
    assert "there already" in refused(inside(*command, *BRIEF))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "PAIRS"], "nowhere: expected the folder of a model"),
        (["PAIRS", "PAIRS"], "expected the folder of a model"),
        (["MODEL", "nowhere.tsv"], "nowhere.tsv"),
        (["MODEL", "PAIRS", "--replay", "nowhere.tsv"], "nowhere.tsv"),
        (["MODEL", "PAIRS", "--old-dev", "nowhere.tsv"], "nowhere.tsv"),
        (["MODEL", "PAIRS", "--set", "model.embedding=9"], "neither the model nor its vocabulary"),
        (["MODEL", "PAIRS", "--set", "training.pul=9"], "did you mean 'training.pull'?"),
        (["MODEL", "PAIRS", "--minutes", "nan"], "minutes"),
        (["MODEL", "PAIRS", "--resume"], "nothing to resume"),
        (["MODEL", "PAIRS", "--from", "en"], "--from and --to go together"),
        (["MODEL"], "missing argument 'pairs'"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, files: Path, tmp_path: Path, inside: Inside) -> None:
    places = {"MODEL": files / "model", "PAIRS": files / "pairs.tsv"}
    done = inside("tune", *(places.get(each, each) for each in arguments), "--out", tmp_path / "new", "--quiet")
    assert message in refused(done)
    assert not (tmp_path / "new").exists()
