"""Recording what a GPU is asked for, to have it played back (CUDA graphs)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

from regard.runtime.device_guard import device_guard

_ONE_AT_A_TIME = threading.Lock()


class Recorder:
    """Records on a stream and into memory of its own.

    With `passing`, for recordings that come and go: their stream is none that others may have been given too (torch has
    few, and clears up after a recording what its stream had), and their memory outlives them, so that the next has it.
    """

    def __init__(self, device: torch.device, passing: bool = False) -> None:
        self._device = device
        self.stream = torch.cuda.Stream(device, priority=-1 if passing else 0)  # type: ignore[no-untyped-call]
        self._memory = torch.cuda.graph_pool_handle()
        self._keeper = torch.cuda.CUDAGraph() if passing else None
        if self._keeper is not None:  # as long as it is there, so is the memory
            with self._onto(self._keeper, torch.cuda.Stream(device)):  # type: ignore[no-untyped-call]
                torch.zeros(1, device=device)

    @contextmanager
    def recording(self) -> Iterator[torch.cuda.CUDAGraph]:
        """What is asked for meanwhile is not computed, but recorded."""
        graph = torch.cuda.CUDAGraph()
        with self._onto(graph, self.stream):
            yield graph

    @contextmanager
    def _onto(self, graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream) -> Iterator[None]:
        """As `torch.cuda.graph`, but without collecting garbage, which would take longer than the recording."""
        with _ONE_AT_A_TIME, device_guard(self._device):
            torch.cuda.current_stream().synchronize()
            with torch.cuda.stream(stream):
                graph.capture_begin(pool=self._memory, capture_error_mode="thread_local")  # other threads may go on
                try:
                    yield
                except BaseException:
                    with suppress(RuntimeError):  # which would hide why
                        graph.capture_end()
                    raise
                graph.capture_end()


_HERE = threading.local()


def passing_recorder(device: torch.device) -> Recorder:
    """The one of this thread for recordings on the device that come and go."""
    recorders: dict[torch.device, Recorder] = _HERE.__dict__.setdefault("recorders", {})
    if device not in recorders:
        recorders[device] = Recorder(device, passing=True)
    return recorders[device]
