"""Tiles that were split into several jobs: merging their parts."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from regard.core.kernels.gpu import parts_device as device
from regard.core.kernels.gpu.blocks import next_power_of_two
from regard.core.kernels.gpu.device import launch

STATES_PER_PROGRAM = 4
"""few, because few tiles are split"""
PARTS_AT_ONCE = 16
"""parts that a program reads at a time"""


@dataclass(frozen=True)
class SplitTiles:
    """n split tiles of `size` states. All tensors are int32 [n]."""

    size: int
    tiles: Tensor
    firsts: Tensor
    """the first part of each tile"""
    lasts: Tensor
    """the end of its parts (exclusive)"""

    def add(self, parts: Tensor, result: Tensor) -> None:
        """Sum the parts [G, parts, size, D] into the result [G, N, D]."""
        launch(
            device.add, self._grid(result), parts, result, *self._lists, parts.shape[1], *result.shape[1:],
            **self._options(result.shape[-1]),
        )  # fmt: skip

    def mix(self, parts: Tensor, lses: Tensor, context: Tensor, lse: Tensor) -> None:
        """Merge softmaxes over some keys each, [G, parts, size, F] and [G, parts, size], into [G, T, F] and [G, T]."""
        launch(
            device.mix, self._grid(context), parts, lses, context, lse, *self._lists, parts.shape[1],
            *context.shape[1:], **self._options(context.shape[-1]),
        )  # fmt: skip

    def choose(self, part_best: Tensor, part_chosen: Tensor, best: Tensor, chosen: Tensor) -> None:
        """Write the best of the parts' choices, [G, parts, size], into [G, T]."""
        launch(
            device.choose, self._grid(best), part_best, part_chosen, best, chosen, *self._lists, part_best.shape[1],
            best.shape[1], SIZE=self.size, BLOCK_ROWS=STATES_PER_PROGRAM, PIECES=PARTS_AT_ONCE,
        )  # fmt: skip

    def _grid(self, result: Tensor) -> tuple[int, int, int]:
        return len(self.tiles), len(result), self.size // STATES_PER_PROGRAM

    @property
    def _lists(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.tiles, self.firsts, self.lasts

    def _options(self, features: int) -> dict[str, int]:
        return {
            "SIZE": self.size,
            "BLOCK_ROWS": STATES_PER_PROGRAM,
            "PIECES": PARTS_AT_ONCE,
            "FEATURES": next_power_of_two(features),
        }
