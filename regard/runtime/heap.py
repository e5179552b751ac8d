"""Memory that the C library, torch and oneDNN hold without use.

glibc serves tensors of up to 32 MB from its heap. Batches of many shapes fragment it, and what is free between two
blocks stays with the process: a training grows to several times what it uses.

torch and oneDNN remember how to multiply matrices of 1,024 shapes each. Batches of all sizes reach that slowly, and it
takes hundreds of megabytes.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

TRIM_SECONDS = 10.0  # between two times that a training returns unused memory, which takes about 0.1 s
SHAPE_CACHES = {"LRU_CACHE_CAPACITY": "64", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128"}  # shapes that are remembered


def limit_shape_caches() -> None:
    """Let torch and oneDNN remember fewer shapes of matrix products, unless the environment says how many. They read
    these variables once, at the first such product of the process."""
    for name, value in SHAPE_CACHES.items():
        os.environ.setdefault(name, value)


def trim_heap() -> None:
    """Return the unused pages of the heap to the operating system, where the C library is glibc."""
    if not sys.platform.startswith("linux"):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    if trim is not None:
        trim(0)


class HeapTrimmer:
    """Trims the heap now and then."""

    def __init__(self) -> None:
        self._trimmed = time.monotonic()

    def trim_if_due(self) -> None:
        """Trim the heap if that was not done for a while."""
        if time.monotonic() - self._trimmed >= TRIM_SECONDS:
            trim_heap()
            self._trimmed = time.monotonic()
