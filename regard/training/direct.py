"""Training a task from Python when only its model is wanted, and no folder of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from regard import folder as folders
from regard.models.building import put
from regard.training.loop import Loop, Machine
from regard.training.precision import Precision, read_device
from regard.training.progress import Reporter, Screen, Silent
from regard.training.task import Task


def train_task(
    task: Task, *, screen: Screen | None = None, device: str | None = None, precision: Precision = "auto"
) -> float:
    """By the one loop. Afterwards the task's model has the weights that did best on dev; gives their score."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / folders.TRAINING).mkdir()
        reporter = Reporter(folder / folders.LOG, screen or Silent())
        loop = Loop(task, folder, Machine(read_device(device), precision), reporter, None)
        loop.run()
        if not loop.progress.best_update:
            raise ValueError(f"training ended before its first validation: {loop.progress.ended}")
        put(task.model, folders.read_weights(folder))
    task.model.eval()
    return loop.progress.best
