"""Recording what a GPU is asked for, to have it played back (CUDA graphs)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch


@contextmanager
def recording(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, memory: Any = None) -> Iterator[None]:
    """As `torch.cuda.graph`, but without collecting garbage, which would take longer than the recording. `memory`: the
    pool that recordings share."""
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin(pool=memory, capture_error_mode="thread_local")  # other threads may go on
        try:
            yield
        except BaseException:
            with suppress(RuntimeError):  # which would hide why
                graph.capture_end()
            raise
        graph.capture_end()
