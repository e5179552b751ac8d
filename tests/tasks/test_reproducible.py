"""Two processes that train with the same arguments on a CPU write the same weights, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.tasks.registry import load

KINDS = ("rnn", "transformer", "classify")
SCRIPT = """
import sys
from pathlib import Path
import regard
from tests.training import toy, toy_labels

out = Path(sys.argv[1])
settings = toy.TINY | {"training.word_pairs": 0.1, "training.scheduled_sampling": 0.2, "training.guided_attention": 0.1}
regard.train(toy.PAIRS, out / "rnn", settings=settings, threads=2, device="cpu")
settings = toy.ATTENDS | {"training.epochs": 2, "model.dropout": 0.1, "model.width": 64}
regard.train(toy.PAIRS, out / "transformer", recipe="transformer", settings=settings, threads=2, device="cpu")
# Batches so large that torch would sum the gradients of spellings on both threads at a time.
settings = {"model.width": 128, "training.epochs": 2, "training.batch_sentences": 60}
regard.train(toy_labels.TEXTS, out / "classify", task="classify", settings=settings, threads=2, device="cpu")
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What two processes trained, whose hashes of texts differ."""
    here = tmp_path_factory.mktemp("reproducible")
    for number in range(2):
        environment = {**os.environ, "PYTHONHASHSEED": str(number + 1), "OMP_WAIT_POLICY": "PASSIVE"}
        out = here / str(number)
        subprocess.run([sys.executable, "-c", SCRIPT, str(out)], env=environment, check=True, timeout=300)
    return [here / str(number) for number in range(2)]


@pytest.mark.parametrize("kind", KINDS)
def test_equal_weights(kind: str, folders: list[Path]) -> None:
    for name in ("model.safetensors", "recipe.toml"):
        first, second = ((folder / kind / name).read_bytes() for folder in folders)
        assert first == second, name
    scores = [load(folder / kind, "cpu").card["scores"] for folder in folders]
    assert scores[0] == scores[1]
