"""Decoding steps captured as a CUDA graph: Python runs the first, and asks for replays of the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from regard.runtime.cuda_graph import temporary_capturer
from regard.runtime.device_guard import device_guard

CHUNK = 8  # steps that are replayed before the host looks at their outputs


def can_replay(device: torch.device) -> bool:
    return device.type == "cuda"


class ReplayedSteps:
    """A decoding step that updates its static buffers in place and returns outputs, replayed as often as needed.

    The caller has run the step once, so that no kernel is compiled during capture. On a CPU the step is simply called.
    """

    def __init__(self, step: Callable[[], tuple[Tensor, ...]], device: torch.device) -> None:
        self._step, self._device = step, device
        self._outputs: tuple[Tensor, ...] = ()
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            with temporary_capturer(device).capture() as self._graph:
                self._outputs = step()

    def __call__(self, steps: int) -> list[tuple[np.ndarray, ...]]:
        """Replay so many steps, and return the outputs of each on the host."""
        outputs = []
        with device_guard(self._device):
            for _ in range(steps):
                if self._graph is not None:
                    self._graph.replay()
                current = self._step() if self._graph is None else self._outputs
                outputs.append([x.clone() for x in current])  # the next step overwrites them
        stacked = [torch.stack(each).cpu().numpy() for each in zip(*outputs, strict=True)]
        return list(zip(*stacked, strict=True))
