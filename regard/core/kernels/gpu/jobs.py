"""Lists of blocks split into jobs of similar length, so that no tile with far more blocks delays the others."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from regard.core.kernels.gpu.blocks import Lists
from regard.core.kernels.gpu.split_tiles import SplitTiles

MIN_BLOCKS = 32  # lists with at most this many blocks are not split
BALANCED_JOBS = 256  # a list is split if it has more than 1 / BALANCED_JOBS of all blocks
MANY_TILES = 64
"""this many tiles keep a GPU busy: from here on a list is split only if it is twice as long as the average"""


@dataclass(frozen=True)
class Jobs:
    """The jobs of all tiles. All tensors are int32 [jobs]."""

    split: SplitTiles | None
    parts: int  # the number of parts of all split tiles together
    tiles: Tensor
    begins: Tensor
    middles: Tensor  # where in begin … end the blocks with a mask begin
    ends: Tensor
    slots: Tensor  # the number of the part that a job writes; −1: the job is the whole tile
    leads: Tensor  # 1 for the first job of each tile, else 0

    @property
    def count(self) -> int:
        return len(self.tiles)

    @property
    def ranges(self) -> tuple[Tensor, ...]:
        """The arguments of kernels."""
        return self.tiles, self.begins, self.middles, self.ends, self.slots


def jobs_of(lists: Lists, size: int, device: torch.device) -> Jobs:
    """Return the jobs for lists of tiles of `size` states. Parts of split tiles come first: they take longest."""
    starts, middles = lists.starts.cpu().numpy().astype(np.int64), lists.middles.cpu().numpy().astype(np.int64)
    sizes = np.diff(starts)
    total = int(sizes.sum())
    longest = max(MIN_BLOCKS, total // BALANCED_JOBS, 2 * -(-total // len(sizes)) if len(sizes) >= MANY_TILES else 0)
    rows: list[tuple[int, int, int, int, int, int]] = []
    split_tiles: list[tuple[int, int, int]] = []
    slots = 0
    for tile in np.flatnonzero(sizes > longest).tolist():
        pieces = -(-int(sizes[tile]) // longest)
        bounds = [int(starts[tile]) + piece * int(sizes[tile]) // pieces for piece in range(pieces + 1)]
        split_tiles.append((tile, slots, slots + pieces))
        for begin, end in pairwise(bounds):
            middle = min(max(int(middles[tile]), begin), end)
            rows.append((tile, begin, middle, end, slots, int(begin == bounds[0])))
            slots += 1
    unsplit = np.flatnonzero(sizes <= longest)
    ones = np.ones_like(unsplit)
    unsplit_rows = np.stack([unsplit, starts[unsplit], middles[unsplit], starts[unsplit + 1], -ones, ones], 1)
    table = np.concatenate([np.array(rows, np.int64).reshape(-1, 6), unsplit_rows]).astype(np.int32)
    split = SplitTiles(size, *_columns(np.array(split_tiles, np.int32), device)) if split_tiles else None
    return Jobs(split, slots, *_columns(table, device))


def _columns(table: np.ndarray, device: torch.device) -> list[Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(column)).to(device) for column in table.T]
