"""Interpreter settings for two threads: one launches a GPU's work, the other prepares the next examples."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

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
