"""The rows of a smoothed cross-entropy on a GPU: one pass over [N, V], in which logits become their gradient."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.core.kernels.gpu.blocks import power
from regard.runtime.device_guard import device_guard

WIDEST = 1 << 16
"""tokens of a vocabulary that a program can hold"""


def rows(logits: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float, counts: Tensor | None) -> Tensor:
    """The loss of each row [N]; logits [N, V], without the bias [V], become the gradient of their mean, in which a row
    counts `counts` [N] times, or once."""
    count, size = logits.shape
    losses = logits.new_empty(count, dtype=torch.float32)
    if count:
        block = power(size)
        with device_guard(logits.device):
            _row[(count,)](
                logits, logits if bias is None else bias, expected, losses if counts is None else counts, losses,
                size, 1 / count, smoothing,
                BIAS=bias is not None, COUNTS=counts is not None, BLOCK=block, num_warps=max(4, min(32, block // 512)),
            )  # fmt: skip
    return losses


@triton.jit
def _row(
    logits, bias, expected, counts, losses, size, share, smoothing,
    BIAS: tl.constexpr, COUNTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    there = i < size
    at = logits + row.to(tl.int64) * size + i
    z = tl.load(at, there, 0.0).to(tl.float32)
    if BIAS:
        z += tl.load(bias + i, there, 0.0).to(tl.float32)
    right = i == tl.load(expected + row)
    highest = tl.max(tl.where(there, z, -float("inf")), 0)
    chances = tl.where(there, tl.exp(z - highest), 0.0)
    total = tl.sum(chances, 0)
    told = (1.0 - smoothing) * tl.sum(tl.where(right, z, 0.0), 0) + smoothing * tl.sum(z, 0) / size
    tl.store(losses + row, highest + tl.log(total) - told)
    if COUNTS:
        share *= tl.load(counts + row)
    gradient = chances / total - smoothing / size - tl.where(right, 1.0 - smoothing, 0.0)
    tl.store(at, (gradient * share).to(logits.dtype.element_ty), there)
