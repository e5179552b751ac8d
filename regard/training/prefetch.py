"""Python for two threads: one gives a GPU its work, the other makes the next examples."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

SWITCH = 0.0002
"""seconds after which one thread makes way for the other; with Python's 5 ms the GPU would wait for most updates"""
COLLECTED = (100_000, 50, 100)
"""new objects after which garbage is looked for: an epoch is made of as many, and none of them is garbage"""


@contextmanager
def side_by_side(device: torch.device) -> Iterator[None]:
    """While a GPU is given its work; on a CPU nothing is made beside."""
    if device.type != "cuda":
        yield
        return
    switch, collected = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH)
    gc.set_threshold(*COLLECTED)
    gc.freeze()  # what is there stays
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*collected)
        sys.setswitchinterval(switch)
