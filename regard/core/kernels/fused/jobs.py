"""Lists of blocks cut into jobs of like length, so that a tile which meets far more than others holds up none."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from regard.core.kernels.fused.blocks import Lists

LEAST = 32
"""blocks below which no list is cut"""
SHARES = 256
"""a list is cut if it holds more than this share of all blocks"""


@dataclass(frozen=True)
class Jobs:
    """All tensors are int32 [jobs]."""

    cut: tuple[tuple[int, int, int], ...]
    """(tile, first part, behind the last) of every tile that was cut"""
    tiles: Tensor
    begins: Tensor
    middles: Tensor
    """where in begin … end the blocks with a mask begin"""
    ends: Tensor
    slots: Tensor
    """the number of the part that a job writes; −1: it is the whole tile"""
    leads: Tensor
    """1: the first job of its tile"""

    @property
    def count(self) -> int:
        return len(self.tiles)

    @property
    def parts(self) -> int:
        return self.cut[-1][2] if self.cut else 0


def jobs_of(lists: Lists, device: torch.device) -> Jobs:
    """Parts come first: they are the longest jobs."""
    starts, middles = lists.starts.cpu().numpy().astype(np.int64), lists.middles.cpu().numpy().astype(np.int64)
    sizes = np.diff(starts)
    longest = max(LEAST, int(sizes.sum()) // SHARES)
    rows: list[tuple[int, int, int, int, int, int]] = []
    cut: list[tuple[int, int, int]] = []
    slots = 0
    for tile in np.flatnonzero(sizes > longest).tolist():
        pieces = -(-int(sizes[tile]) // longest)
        bounds = [int(starts[tile]) + piece * int(sizes[tile]) // pieces for piece in range(pieces + 1)]
        cut.append((tile, slots, slots + pieces))
        for begin, end in pairwise(bounds):
            middle = min(max(int(middles[tile]), begin), end)
            rows.append((tile, begin, middle, end, slots, int(begin == bounds[0])))
            slots += 1
    whole = np.flatnonzero(sizes <= longest)
    ones = np.ones_like(whole)
    one = np.stack([whole, starts[whole], middles[whole], starts[whole + 1], -ones, ones], 1)
    table = np.concatenate([np.array(rows, np.int64).reshape(-1, 6), one]).astype(np.int32)
    columns = [torch.from_numpy(np.ascontiguousarray(column)).to(device) for column in table.T]
    return Jobs(tuple(cut), *columns)
