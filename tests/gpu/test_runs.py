"""Trainings on a GPU: resumed, ended by dev or by the clock, several that teach one; and ensembles."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.training import open_ended
from tests.gpu.commands import sentences, settings, some_pairs, works
from tests.gpu.test_translators import RNN, SHORT, WIDE


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return some_pairs(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("recipe", ["rnn", "transformer"])
@pytest.mark.parametrize("precision", ["auto", "bf16"])
def test_a_run_is_resumed(recipe: str, precision: str, pairs: Path, tmp_path: Path) -> None:
    values = SHORT | (RNN if recipe == "rnn" else WIDE)
    folder = tmp_path / "model"
    common = ("train", pairs, "--out", folder, "--recipe", recipe, *settings(**values), "--precision", precision, "-q")
    works(*common)
    again = works(*common[:-1], "--resume")
    assert "ended" in again.err


@pytest.mark.parametrize("recipe", ["rnn", "transformer"])
def test_a_run_that_dev_ends(recipe: str, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_ended, "MIN_INTERVAL", 10)
    monkeypatch.setattr(open_ended, "MIN_GAIN", 100.0)  # dev stalls as soon as it may
    values = {key: value for key, value in SHORT.items() if key != "training__epochs"}
    values |= RNN if recipe == "rnn" else WIDE
    works("train", pairs, "--out", tmp_path / "model", "--recipe", recipe, *settings(**values), "-q")
    works("translate", tmp_path / "model", "Rahul is a good boy.")


@pytest.mark.parametrize("others", [["rnn"], ["transformer"], ["rnn", "transformer"]])
def test_an_ensemble(others: list[str], pairs: Path, tmp_path: Path) -> None:
    """Its steps are captured and replayed as those of one model: the texts are those of the CPU."""
    folders = [tmp_path / f"{number}-{recipe}" for number, recipe in enumerate(["rnn", *others])]
    for seed, folder in enumerate(folders):
        values = SHORT | (RNN if folder.name.endswith("rnn") else WIDE)
        recipe = folder.name.split("-")[1]
        works("train", pairs, "--out", folder, "--recipe", recipe, *settings(**values), "--seed", seed, "-q")
    members = [word for folder in folders[1:] for word in ("--ensemble", folder)]
    texts = sentences(pairs, count=40)
    result = [
        works("translate", folders[0], *members, *texts, "--precision", "fp32", "--device", device).out.splitlines()
        for device in ("cuda", "cpu")
    ]
    same = sum(a == b for a, b in zip(*result, strict=True))
    assert same >= 36, f"{same} of 40 alike"


def test_the_best(pairs: Path, tmp_path: Path) -> None:
    """Members train side by side on the one GPU."""
    folder = tmp_path / "model"
    works(
        "train", pairs, "--out", folder, "--recipe", "rnn", *settings(**SHORT | RNN), "--best", "--keep-ensemble", "-q"
    )
    assert len(list((folder / "ensemble").iterdir())) == 4
    works("translate", folder, "Rahul is a good boy.")


def test_a_comparison(pairs: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "small.toml"
    values = [f"{key.replace('__', '.')} = {value}" for key, value in (SHORT | RNN).items()]
    recipe.write_text("\n".join(values))
    options = ("--recipe", recipe, "--vary", "model.score=general", "--seeds", 1, "--minutes", 0.3, "--jobs", 2, "-q")
    assert "Best: " in works("compare", pairs, "--out", tmp_path / "kinds", *options).out


def test_a_run_by_the_clock(pairs: Path, tmp_path: Path) -> None:
    works("train", pairs, "--out", tmp_path / "model", "--minutes", 0.5, "-q")
    works("translate", tmp_path / "model", "Rahul is a good boy.")


def test_the_doctor() -> None:
    done = works("doctor")
    assert "kernels on cuda:0" in done.out and "FAILED" not in done.out
    assert "yes    fused additive" in done.out and "ok     translator on cuda:0" in done.out


def test_the_demo(tmp_path: Path) -> None:
    assert "Rahul" in works("demo", "--out", tmp_path / "demo", "--minutes", 0.5).out
