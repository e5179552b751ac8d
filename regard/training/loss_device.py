"""The fused kernel of the smoothed cross-entropy: one pass over logits [N, V], which overwrites them by their
gradient."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.core.kernels.gpu.blocks import next_power_of_two
from regard.runtime.device_guard import device_guard

MAX_VOCABULARY = 1 << 16  # the largest vocabulary whose row of logits one program can process


def row_losses_(
    logits: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float, counts: Tensor | None
) -> Tensor:
    """Return the loss of each row [N]; overwrite logits [N, V], which lack the bias [V], by the gradient of the mean
    loss, in which a row has the weight `counts` [N], or 1."""
    count, size = logits.shape
    losses = logits.new_empty(count, dtype=torch.float32)
    if count:
        block = next_power_of_two(size)
        with device_guard(logits.device):
            _row_loss[(count,)](
                logits, logits if bias is None else bias, expected, losses if counts is None else counts, losses,
                size, 1 / count, smoothing,
                BIAS=bias is not None, COUNTS=counts is not None, BLOCK=block, num_warps=max(4, min(32, block // 512)),
            )  # fmt: skip
    return losses


@triton.jit
def _row_loss(
    logits, bias, expected, counts, losses, size, row_weight, smoothing,
    BIAS: tl.constexpr, COUNTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask = i < size
    pointers = logits + row.to(tl.int64) * size + i
    z = tl.load(pointers, mask, 0.0).to(tl.float32)
    if BIAS:
        z += tl.load(bias + i, mask, 0.0).to(tl.float32)
    is_target = i == tl.load(expected + row)
    highest = tl.max(tl.where(mask, z, -float("inf")), 0)
    exponentials = tl.where(mask, tl.exp(z - highest), 0.0)
    total = tl.sum(exponentials, 0)
    target_z = (1.0 - smoothing) * tl.sum(tl.where(is_target, z, 0.0), 0) + smoothing * tl.sum(z, 0) / size  # qᵀz
    tl.store(losses + row, highest + tl.log(total) - target_z)
    if COUNTS:
        row_weight *= tl.load(counts + row)
    gradient = exponentials / total - smoothing / size - tl.where(is_target, 1.0 - smoothing, 0.0)
    tl.store(pointers, (gradient * row_weight).to(logits.dtype.element_ty), mask)
