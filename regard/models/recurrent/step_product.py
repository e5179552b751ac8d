"""Matrix products of few rows on a GPU, as a step of a recurrence needs them (kernels in step_device.py)."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.runtime.precision import exact_products

TILE_ROWS, TILE_COLUMNS, TILE_INNER = 64, 32, 64
"""the tile of a program: rows and columns of the result, and terms of the sum per iteration"""
PROGRAMS = 256  # the number of programs to launch for a product, so that all multiprocessors of a GPU are busy


class GpuStepProduct:
    """x weightᵀ for x [B, K], weight [N, K], split along K: `parts` [parts, B, N] are the partial sums (split-K)."""

    def __init__(self, weight: Tensor, batch: int) -> None:
        self.weight = weight.contiguous()
        self.batch, (self.columns, self.inner) = batch, weight.shape
        # Kernels are compiled for a number of parts, so only two sizes of batches are told apart.
        tiles = (1 if batch <= 2 * TILE_ROWS else 4) * -(-self.columns // TILE_COLUMNS)
        blocks = -(-self.inner // TILE_INNER)
        self._chunk = -(-blocks // max(1, min(blocks, PROGRAMS // tiles))) * TILE_INNER
        self.count = -(-self.inner // self._chunk)
        self.parts = weight.new_empty(self.count, batch, self.columns)
        self.strides = (self.columns, self.parts.stride(0))
        """the distances, in numbers, from one row to the next and from one part to the next"""
        self._precision = "tf32x3" if exact_products() else "tf32"

    def __call__(self, x: Tensor, border: int | None = None, offset: int = 0) -> None:
        """Write the product with x into `parts`; columns from `border` on are of the matrix at x + `offset`."""
        from regard.models.recurrent import step_device as device

        grid = (-(-self.batch // TILE_ROWS), -(-self.columns // TILE_COLUMNS), self.count)
        device.product[grid](
            x, self.weight, self.parts, self.batch, self.columns, self.inner, self._chunk, x.stride(0),
            self.columns if border is None else border, offset,
            TILE_ROWS=TILE_ROWS, TILE_COLUMNS=TILE_COLUMNS, TILE_INNER=TILE_INNER, PRECISION=self._precision,
        )  # fmt: skip


def stacked(one: Tensor, two: Tensor) -> tuple[Tensor, int]:
    """Return weights [N, K] and [M, K] as one, and the column where the second begins: that of a new tile."""
    border = -(-len(one) // TILE_COLUMNS) * TILE_COLUMNS
    return torch.cat([one, one.new_zeros(border - len(one), one.shape[1]), two]), border
