"""Capture of CUDA graphs, to be replayed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

from regard.runtime.device_cache import retained_values
from regard.runtime.device_guard import device_guard

_ONE_CAPTURE_AT_A_TIME = threading.Lock()


class CapturedGraph(torch.cuda.CUDAGraph):
    """A CUDA graph and the values of caches that it reads."""

    cached_values: list[object]


class GraphCapturer:
    """Captures graphs on a stream and into a memory pool of its own.

    With `temporary`, for graphs that come and go: their stream is none that torch's pool of streams may have given to
    others too (torch clears, after a capture, what its stream had), and the memory pool outlives them, so that the next
    graph reuses it.
    """

    def __init__(self, device: torch.device, temporary: bool = False) -> None:
        self._device = device
        self.stream = torch.cuda.Stream(device, priority=-1 if temporary else 0)  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()
        self._pool_keeper = torch.cuda.CUDAGraph() if temporary else None
        if self._pool_keeper is not None:  # the pool lives as long as a graph that uses it
            with self._capturing(self._pool_keeper, torch.cuda.Stream(device)):  # type: ignore[no-untyped-call]
                torch.zeros(1, device=device)

    @contextmanager
    def capture(self) -> Iterator[CapturedGraph]:
        """Capture what is launched meanwhile, without running it."""
        graph = CapturedGraph()
        graph.cached_values = []
        with retained_values(graph.cached_values), self._capturing(graph, self.stream):
            yield graph

    @contextmanager
    def _capturing(self, graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream) -> Iterator[None]:
        """Do what `torch.cuda.graph` does, but without collecting garbage, which would take longer than the capture."""
        with _ONE_CAPTURE_AT_A_TIME, device_guard(self._device):
            torch.cuda.current_stream().synchronize()
            with torch.cuda.stream(stream):
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")  # other threads may go on
                try:
                    yield
                except BaseException:
                    with suppress(RuntimeError):  # which would hide the cause
                        graph.capture_end()
                    raise
                graph.capture_end()


_THREAD = threading.local()
"""`capturers`: those of this thread by device. A search lends its pool to the next one, so they live as long as the
thread; the graphs themselves end with their search."""


def temporary_capturer(device: torch.device) -> GraphCapturer:
    """Return this thread's capturer for temporary graphs on a device."""
    capturers: dict[torch.device, GraphCapturer] = _THREAD.__dict__.setdefault("capturers", {})
    if device not in capturers:
        capturers[device] = GraphCapturer(device, temporary=True)
    return capturers[device]
