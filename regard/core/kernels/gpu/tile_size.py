"""The width of the tiles of the kernels along blocks, and how many of them fit into shared memory."""

from __future__ import annotations

import torch

from regard.core.kernels.gpu.blocks import HEIGHT, next_power_of_two

RESERVED_BYTES = 3072  # shared memory for everything but tiles
MAX_STAGES = 3  # the stages of the pipeline that loads blocks while others are computed
WIDE_FEATURES = 64  # features above which tiles of float32 take 8 warps


def tile_width(features: int) -> int:
    """Return the width of a tile for so many features: a power of two, and at least 32, because with narrower tiles
    Triton 3.6 reads beyond the shared memory in 16-bit products."""
    return max(32, next_power_of_two(features))


def stages(dtype: torch.dtype, features: int, values: int, precision: str, available: int) -> int:
    """Return how many stages fit into the shared memory, in bytes, of a multiprocessor; 0: not even one does. The
    gradient of the keys needs the most tiles. 3 stages need no more memory than 2."""
    exact = dtype is torch.float32 and precision != "tf32"  # each number is stored as two parts
    several, one = (8, 6) if exact else (6, 6 if dtype is torch.float32 else 4)
    tile = HEIGHT * (tile_width(features) + tile_width(values)) // 2 * dtype.itemsize
    for count, tiles in ((MAX_STAGES, several), (1, one)):
        if tiles * tile + RESERVED_BYTES <= available:
            return count
    return 0


def warps(dtype: torch.dtype, features: int, values: int, noise: bool = False) -> int:
    """Return the warps per tile. Wide float32 tiles take more, and so do those with noise: fewer registers per thread,
    faster to compile."""
    return 8 if dtype is torch.float32 and (noise or max(features, values) > WIDE_FEATURES) else 4
