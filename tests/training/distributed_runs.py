"""The trainings that each of two processes runs for test_distributed.py: `python -m tests.training.distributed_runs F`.

All are in the folder F, which has the data: pairs.tsv.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from regard.experiments.best.train import train_best
from regard.runtime.launch import ReportedElsewhereError
from regard.tasks.train import train
from regard.training import progress as reports
from tests.training import toy, toy_labels

DRAWS: dict[str, Any] = toy.TINY | {
    "training.epochs": 20,
    "training.validations": 10,
    "training.average": 0.9,
    "training.scheduled_sampling": 0.3,
}
"""40 updates of two batches; dropout and scheduled sampling draw random numbers in each process"""
SAME: dict[str, Any] = toy.LEARNS | {
    "training.epochs": 4,
    "training.batch_sentences": 10,
    "training.guided_attention": 0.5,
    "training.validations": 1,
}
"""nothing is drawn; 4 updates an epoch, the last of a single batch"""
SAME_TRANSFORMER: dict[str, Any] = toy.ATTENDS | {"training.epochs": 4, "training.validations": 1}
SAME_LABELS: dict[str, Any] = (
    toy_labels.TINY | toy_labels.NOTHING_DRAWN | {"training.epochs": 2, "training.balance": 0.5}
)


class Signalled(toy.Watcher):
    """A screen that sends its process a signal, which `torchrun` would send to all of them."""

    def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
        self.advanced += 1
        if self.advanced == 7:
            os.kill(os.getpid(), signal.SIGTERM)


def run(out: Path, settings: dict[str, Any], **options: Any) -> Any:
    return train(out.parent / "pairs.tsv", out, settings=settings, device="cpu", precision="fp32", **options)


def same_runs(folder: Path, accumulate: int) -> None:
    """Run trainings without random numbers, of so many batches per update and process."""
    more = {"training.accumulate": accumulate}
    run(folder / "rnn", SAME | more)
    run(folder / "transformer", SAME_TRANSFORMER | more, recipe="transformer")
    train(toy_labels.TEXTS, folder / "labels", task="classify", settings=SAME_LABELS | more, device="cpu")


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    reports.LOG_INTERVAL = 1
    dist.init_process_group("gloo")
    first = dist.get_rank() == 0
    same_runs(folder, 1)
    whole = run(folder / "whole", DRAWS)
    states = [None, None]
    dist.all_gather_object(states, (torch.rand(1).item(), whole.card["scores"]))
    assert states[0][0] != states[1][0], "each process has random numbers of its own"  # type: ignore[index]
    assert states[0][1] == states[1][1]  # type: ignore[index]

    with pytest.raises(KeyboardInterrupt):
        run(folder / "broken", DRAWS, screen=Signalled())
    torch.manual_seed(77)
    run(folder / "broken", DRAWS, resume=True)

    run(folder / "clock", {key: value for key, value in DRAWS.items() if "epochs" not in key}, minutes=0.05)

    with pytest.raises(ValueError if first else ReportedElsewhereError, match=r"got 2 × 2" if first else None):
        run(folder / "whole", DRAWS | {"training.accumulate": 2}, resume=True)
    with pytest.raises((ValueError, OSError) if not first else ReportedElsewhereError):  # the file is missing for one
        train(folder / ("pairs.tsv" if first else "missing.tsv"), folder / "failed", settings=DRAWS, device="cpu")
    with pytest.raises(ValueError, match=r"best: .* expected no torchrun"):
        train_best(folder / "pairs.tsv", folder / "best")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
