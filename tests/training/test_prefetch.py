"""What two threads need of Python is there for a while, and not longer."""

import gc
import sys
import threading

import pytest
import torch

from regard.training.plan import EpochForm
from regard.training.prefetch import GC_THRESHOLDS, SWITCH_INTERVAL, Epochs, prefetching


def now() -> tuple[float, tuple[int, int, int], int]:
    return sys.getswitchinterval(), gc.get_threshold(), gc.get_freeze_count()


def test_on_a_gpu_it_is_as_before_afterwards() -> None:
    before = now()
    with prefetching(torch.device("cuda")):
        assert now()[:2] == (pytest.approx(SWITCH_INTERVAL), GC_THRESHOLDS) and now()[2] > before[2]
    assert now()[:2] == before[:2] and now()[2] <= before[2]  # Python 3.12 freezes some objects of its own


def test_on_a_cpu_nothing_changes() -> None:
    before = now()
    with prefetching(torch.device("cpu")):
        assert now() == before


class Numbered:
    """A task that notes which epochs were made, and by which thread."""

    def __init__(self) -> None:
        self.made: list[tuple[int, float, bool, bool]] = []

    def epoch(self, number: int, batch: float, canonical: bool) -> list[int]:
        self.made.append((number, batch, canonical, threading.current_thread() is threading.main_thread()))
        return [number]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_next_epoch_is_prepared_by_another_thread_on_a_gpu(device: str) -> None:
    task = Numbered()
    epochs = Epochs(task, torch.device(device))  # type: ignore[arg-type]
    assert list(epochs.batches(0, EpochForm())) == [0]
    epochs.prepare(1, EpochForm())
    assert list(epochs.batches(1, EpochForm())) == [1]
    epochs.prepare(2, EpochForm())
    assert list(epochs.batches(2, EpochForm(0.5))) == [2], "of the size that is asked for"
    epochs.prepare(3, EpochForm(0.5))
    assert list(epochs.batches(3, EpochForm(0.5, canonical=True))) == [3], "of the segmentation that is asked for"
    epochs.close()
    by_others = [each[:3] for each in task.made if not each[3]]
    by_this = [each[:3] for each in task.made if each[3]]
    others = [(0, 1.0, False), (2, 0.5, False), (3, 0.5, True)]
    # What is not needed any more may be dropped.
    assert by_others[:1] == ([(1, 1.0, False)] if device == "cuda" else [])
    assert by_this == (others if device == "cuda" else sorted([*others, (1, 1.0, False)]))
