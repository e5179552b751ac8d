"""Trainings on a GPU with --deterministic: repeated bit for bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.commands import settings, some_pairs
from tests.gpu.test_translators import KINDS, RNN, SHORT


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return some_pairs(tmp_path_factory.mktemp("data"))


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
