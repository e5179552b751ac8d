"""Memory that the C library holds without use.

glibc serves tensors of up to 32 MB from its heap. Batches of many shapes fragment it, and what is free between two
blocks stays with the process: a training grows to several times what it uses.
"""

from __future__ import annotations

import ctypes
import sys


def trim_heap() -> None:
    """Return the unused pages of the heap to the operating system, where the C library is glibc."""
    if not sys.platform.startswith("linux"):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    if trim is not None:
        trim(0)
