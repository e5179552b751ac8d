"""Lists of blocks cut into jobs of like length, so that a tile which meets far more than others holds up none."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from regard.core.kernels.gpu.blocks import Lists
from regard.core.kernels.gpu.cut import Cut

LEAST = 32
"""blocks below which no list is cut"""
SHARES = 256
"""a list is cut if it holds more than this share of all blocks"""
MANY = 64
"""tiles which keep a GPU busy as they are: there a list is cut only if it is twice as long as most"""


@dataclass(frozen=True)
class Jobs:
    """All tensors are int32 [jobs]."""

    cut: Cut | None
    parts: int
    """into which tiles were cut, all together"""
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


def jobs_of(lists: Lists, size: int, device: torch.device) -> Jobs:
    """Of tiles of `size` states. Parts come first: they are the longest jobs."""
    starts, middles = lists.starts.cpu().numpy().astype(np.int64), lists.middles.cpu().numpy().astype(np.int64)
    sizes = np.diff(starts)
    total = int(sizes.sum())
    longest = max(LEAST, total // SHARES, 2 * -(-total // len(sizes)) if len(sizes) >= MANY else 0)
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
    found = Cut(size, *_columns(np.array(cut, np.int32), device)) if cut else None
    return Jobs(found, slots, *_columns(table, device))


def _columns(table: np.ndarray, device: torch.device) -> list[Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(column)).to(device) for column in table.T]
