"""Steps of a search that a GPU plays back: Python asks for the first, and for the others only that they be played."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from regard.core.cuda_graph import passing_recorder
from regard.core.kernels.fused.device import on

CHUNK = 8
"""steps between two looks at whether more are needed"""


def plays(device: torch.device) -> bool:
    return device.type == "cuda"


class Played:
    """A step, which changes what it needs in its place and tells something, as often as it is wanted.

    It is run once before, by whoever makes this, so that nothing is met for the first time while it is recorded.
    """

    def __init__(self, step: Callable[[], tuple[Tensor, ...]], device: torch.device) -> None:
        self._step, self._device = step, device
        self._told: tuple[Tensor, ...] = ()
        self._graph = self._recorded() if device.type == "cuda" else None

    def __call__(self, steps: int) -> list[tuple[np.ndarray, ...]]:
        """What each step tells."""
        told = []
        with on(self._device):
            for _ in range(steps):
                told.append([x.clone() for x in self._once()])  # the next step writes where they lie
        together = [torch.stack(each).cpu().numpy() for each in zip(*told, strict=True)]
        return list(zip(*together, strict=True))

    def _once(self) -> tuple[Tensor, ...]:
        if self._graph is None:
            return self._step()
        self._graph.replay()
        return self._told

    def _recorded(self) -> torch.cuda.CUDAGraph:
        with passing_recorder(self._device).recording() as graph:
            self._told = self._step()
        return graph
