"""Two threads: while one launches a GPU's work, the other prepares the batches of the next epoch."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import torch

from regard.training.plan import EpochForm
from regard.training.task import MakeBatch, Task

SWITCH_INTERVAL = 0.0002
"""seconds after which one thread yields the GIL to the other; with Python's 5 ms the GPU waits for most updates"""
GC_THRESHOLDS = (100_000, 50, 100)
"""new objects after which garbage is collected: an epoch is made of as many, and none of them is garbage"""


@contextmanager
def prefetching(device: torch.device) -> Iterator[None]:
    """Let another thread prepare examples while this one launches a GPU's work; on a CPU nothing changes."""
    if device.type != "cuda":
        yield
        return
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()  # what exists stays
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)


class Epochs:
    """The batches of a task's epochs. On a GPU, which leaves the CPU free, another thread prepares the next epoch."""

    def __init__(self, task: Task, device: torch.device) -> None:
        self._task = task
        self._executor = ThreadPoolExecutor(1) if device.type == "cuda" else None
        self._next: tuple[int, EpochForm, Future[Sequence[MakeBatch]]] | None = None
        """number, form and batches of the epoch that is being prepared"""

    def batches(self, number: int, form: EpochForm) -> Sequence[MakeBatch]:
        """Return the batches of an epoch."""
        prepared, self._next = self._next, None
        if prepared is not None and prepared[:2] == (number, form):
            return prepared[2].result()
        return self._task.epoch(number, *form)

    def prepare(self, number: int, form: EpochForm) -> None:
        """Begin to prepare an epoch, if there is a thread for it."""
        if self._executor is not None:
            self._next = number, form, self._executor.submit(self._task.epoch, number, *form)

    def close(self) -> None:
        """Drop what is being prepared."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
