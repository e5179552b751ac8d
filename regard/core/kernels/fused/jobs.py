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
MANY = 64
"""tiles which keep a GPU busy as they are: there a list is cut only if it is twice as long as most"""


@dataclass(frozen=True)
class Cut:
    """The tiles that were cut into pieces. All tensors are int64, made once, so that no kernel has to be asked."""

    pieces: Tensor
    """[n, most]: the parts of each tile; those it lacks are its first"""
    real: Tensor
    """bool [n, most]"""
    inside: Tensor
    """where, of the n tiles one behind the other, the states are that there are"""
    places: Tensor
    """and which they are"""

    def pieces_of(self, parts: Tensor, fill: float) -> Tensor:
        """[G, parts, size, …] → [G, n, most, size, …], `fill` where a tile has fewer"""
        found = parts[:, self.pieces]
        real = self.real.view(1, *self.real.shape, *(1 for _ in found.shape[3:]))
        return torch.where(real, found, fill)

    def put(self, result: Tensor, found: Tensor) -> None:
        """[G, n, size, …] of these tiles into [G, N, …]"""
        result[:, self.places] = found.flatten(1, 2)[:, self.inside].to(result.dtype)


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

    def put_sums(self, result: Tensor, parts: Tensor) -> None:
        """The parts [G, parts, size, D] of tiles that were cut, summed up into the result [G, N, D]."""
        if self.cut is not None:
            self.cut.put(result, self.cut.pieces_of(parts, 0.0).sum(2))


def jobs_of(lists: Lists, size: int, length: int, device: torch.device) -> Jobs:
    """Of tiles of `size` states, `length` in all. Parts come first: they are the longest jobs."""
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
    columns = [torch.from_numpy(np.ascontiguousarray(column)).to(device) for column in table.T]
    return Jobs(_cut(cut, size, length, device), slots, *columns)


def _cut(cut: list[tuple[int, int, int]], size: int, length: int, device: torch.device) -> Cut | None:
    """Of (tile, first part, behind the last) of every tile that was cut"""
    if not cut:
        return None
    tiles, first, last = np.array(cut).T
    number = np.arange((last - first).max())
    real = number < (last - first)[:, None]
    places = (tiles[:, None] * size + np.arange(size)).reshape(-1)
    inside = np.flatnonzero(places < length)
    found = np.where(real, first[:, None] + number, first[:, None]), real, inside, places[inside]
    return Cut(*(torch.from_numpy(x).to(device) for x in found))
