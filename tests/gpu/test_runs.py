"""Trainings on a GPU: resumed, ended by dev or by the clock, several that teach one; and ensembles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from regard.training import open_ended
from tests.gpu.commands import sentences, settings, some_pairs, works
from tests.gpu.test_translators import KINDS, RNN, SHORT, WIDE


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
    assert len(list((folder / "ensemble").iterdir())) == 3
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


def trained(*arguments: object) -> str:
    """Train in a process of its own, because cuBLAS reads its workspace when CUDA starts; return what it says."""
    command = [sys.executable, "-m", "regard", "train", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stderr


@pytest.mark.parametrize(
    "kind",
    ["gru additive", "bahdanau, sparsemax", "hard, reinforce", "hard, gumbel", "transformer", "consistent, masked"],
)
def test_a_deterministic_run_is_repeated_bit_for_bit(kind: str, pairs: Path, tmp_path: Path) -> None:
    """Captured updates, replaced cumulative sums, gradients of embeddings and of chosen keys."""
    recipe, values = KINDS[kind]
    options = ("--recipe", recipe, *settings(**SHORT | values), "--device", "cuda", "--deterministic")
    trained(pairs, "--out", tmp_path / "first", *options)
    assert "the weights are those of the card, bit for bit" in trained(
        "--from-card", tmp_path / "first", "--out", tmp_path / "second"
    )
    trained(pairs, "--out", tmp_path / "third", *options)
    first, second, third = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("first", "second", "third")
    )
    assert first == second == third


def test_a_deterministic_run_in_bfloat16_is_repeated_bit_for_bit(pairs: Path, tmp_path: Path) -> None:
    options = (*settings(**SHORT | RNN), "--recipe", "rnn", "--device", "cuda", "--precision", "bf16")
    trained(pairs, "--out", tmp_path / "first", *options, "--deterministic")
    assert "bit for bit" in trained("--from-card", tmp_path / "first", "--out", tmp_path / "second")


def test_a_deterministic_classifier_is_repeated_bit_for_bit(tmp_path: Path) -> None:
    texts = tmp_path / "texts.tsv"
    rows = [f"text {number} is {word}\t{word}" for number in range(100) for word in ("good", "bad")]
    texts.write_text("\n".join(rows) + "\n", encoding="utf-8")
    values = settings(training__epochs=2, training__validations=1)
    trained(texts, "--task", "classify", "--out", tmp_path / "first", *values, "--device", "cuda", "--deterministic")
    assert "bit for bit" in trained("--from-card", tmp_path / "first", "--out", tmp_path / "second")


def test_the_doctor() -> None:
    done = works("doctor")
    assert "kernels on cuda:0" in done.out and "FAILED" not in done.out
    assert "yes    fused additive" in done.out and "ok     translator on cuda:0" in done.out


def test_the_demo(tmp_path: Path) -> None:
    assert "Rahul" in works("demo", "--out", tmp_path / "demo", "--minutes", 0.5).out
