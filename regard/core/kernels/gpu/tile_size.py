"""How wide the tiles of the kernels along blocks are, and how many of them fit into shared memory."""

from __future__ import annotations

import torch

from regard.core.kernels.gpu.blocks import power

ROWS = 64
"""queries or keys of a tile"""
RESERVED = 3072
"""bytes of shared memory for what is not a tile"""
STAGES = 3
"""of the pipeline that loads blocks while others are computed"""
WIDE = 64
"""features above which tiles of float32 take 8 warps"""


def tile_width(features: int) -> int:
    """Return the width of a tile that holds so many features: a power of two, and at least 32, because of narrower
    ones Triton 3.6 reads beyond the shared memory in products of 16-bit numbers."""
    return max(32, power(features))


def stages(dtype: torch.dtype, features: int, values: int, precision: str, available: int) -> int:
    """Return how many stages fit into the shared memory, in bytes, of a multiprocessor; 0: not even one does.

    Most tiles are held by the gradient of the keys. Of what several stages hold, 3 is no more than 2.
    """
    exact = dtype is torch.float32 and precision != "tf32"  # two parts of each number are held
    several, one = (8, 6) if exact else (6, 6 if dtype is torch.float32 else 4)
    tile = ROWS * (tile_width(features) + tile_width(values)) // 2 * dtype.itemsize
    for count, tiles in ((STAGES, several), (1, one)):
        if tiles * tile + RESERVED <= available:
            return count
    return 0


def warps(dtype: torch.dtype, features: int, values: int) -> int:
    """Return how many warps share a tile. More for wide tiles of float32: fewer registers a thread, less to compile."""
    return 8 if dtype is torch.float32 and max(features, values) > WIDE else 4
