"""Products of a few rows, as a step of a recurrence has them, for a GPU (step_device.py)."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.runtime.matmul_precision import exact_products

ROWS, COLUMNS, INNER = 64, 32, 64
"""what a program has of the result, and of what it sums over at once"""
PROGRAMS = 256
"""that a product should be, so that every processor of a GPU has some"""


class Product:
    """x [B, K] weightᵀ, weight [N, K], in parts."""

    def __init__(self, weight: Tensor, batch: int) -> None:
        self.weight = weight.contiguous()
        self.batch, (self.columns, self.inner) = batch, weight.shape
        # As for one of two sizes of batches: kernels are compiled for the number of parts.
        tiles = (1 if batch <= 2 * ROWS else 4) * -(-self.columns // COLUMNS)
        pieces = -(-self.inner // INNER)
        self._chunk = -(-pieces // max(1, min(pieces, PROGRAMS // tiles))) * INNER
        self.parts = weight.new_empty(-(-self.inner // self._chunk), batch, self.columns)
        self._precision = "tf32x3" if exact_products() else "tf32"

    @property
    def count(self) -> int:
        return len(self.parts)

    @property
    def apart(self) -> int:
        return self.parts.stride(0)

    def __call__(self, x: Tensor, border: int | None = None, behind: int = 0) -> None:
        """Into `parts`; from column `border` on, of what lies `behind` x."""
        from regard.models.recurrent import step_device as device

        grid = (-(-self.batch // ROWS), -(-self.columns // COLUMNS), self.count)
        device.product[grid](
            x, self.weight, self.parts, self.batch, self.columns, self.inner, self._chunk, x.stride(0),
            self.columns if border is None else border, behind,
            ROWS=ROWS, COLUMNS=COLUMNS, INNER=INNER, PRECISION=self._precision,
        )  # fmt: skip


def beside(one: Tensor, two: Tensor) -> tuple[Tensor, int]:
    """[N, K], [M, K] → both as one weight, and the column with which the second begins: where a program does."""
    border = -(-len(one) // COLUMNS) * COLUMNS
    return torch.cat([one, one.new_zeros(border - len(one), one.shape[1]), two]), border
