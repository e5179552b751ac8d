"""What two threads need of Python is there for a while, and not longer."""

import gc
import sys

import pytest
import torch

from regard.training.prefetch import GC_THRESHOLDS, SWITCH_INTERVAL, prefetching


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
