"""Training by torchrun on the one GPU: a process group of NCCL and gloo with a single process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.commands import settings, some_pairs, works
from tests.gpu.test_translators import RNN, SHORT, WIDE

ROOT = Path(__file__).parents[2]
NO_DROPOUT = {"model__dropout": 0.0, "training__segmentation_dropout": 0.0}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return some_pairs(tmp_path_factory.mktemp("data"))


def by_torchrun(*arguments: object) -> str:
    """Run `regard` by torchrun in one process, and return its standard error."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", "-m", "regard"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [*torchrun, *map(str, arguments)], env=environment, check=False, capture_output=True, text=True, timeout=400
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.stderr


def entries(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if entry["kind"] == kind]


@pytest.mark.parametrize("recipe", ["rnn", "transformer"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_training(recipe: str, accumulate: int, pairs: Path, tmp_path: Path) -> None:
    """Its updates are those of a process without torchrun, whose single batches are captured as CUDA graphs."""
    values = SHORT | (RNN if recipe == "rnn" else WIDE) | NO_DROPOUT | {"training__accumulate": accumulate}
    common = ["--recipe", recipe, *settings(**values), "--precision", "fp32"]
    said = by_torchrun("train", pairs, "--out", tmp_path / "torchrun", *common)
    assert "not captured as CUDA graphs" in said
    works("train", pairs, "--out", tmp_path / "alone", *common, "-q")
    ours, theirs = (entries(tmp_path / name, "update") for name in ("torchrun", "alone"))
    assert [entry["update"] for entry in ours] == [entry["update"] for entry in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=2e-3)
    works("translate", tmp_path / "torchrun", "Rahul is a good boy.")
    again = by_torchrun("train", pairs, "--out", tmp_path / "torchrun", *common, "--resume")
    assert "training has ended" in again


def test_a_classifier(pairs: Path, tmp_path: Path) -> None:
    labelled = tmp_path / "labelled.tsv"
    lines = pairs.read_text(encoding="utf-8").splitlines()
    texts = (line.split("\t")[0] for line in lines)
    labelled.write_text("".join(f"{text}\t{'short' if len(text) < 20 else 'long'}\n" for text in texts))
    values = settings(training__epochs=2)
    by_torchrun("train", labelled, "--task", "classify", "--out", tmp_path / "model", *values, "-q")
    works("classify", tmp_path / "model", "Rahul is a good boy.")
