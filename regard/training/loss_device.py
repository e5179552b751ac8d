"""The fused kernels of the smoothed cross-entropy, and of that with consistency training (consistency.py): one pass
over logits [N, V], which overwrites them by their gradient."""

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


def paired_losses_(
    logits: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float, counts: Tensor | None, weight: float
) -> tuple[Tensor, Tensor]:
    """Return the same, and each row's half of the divergence of its pair [N], if rows n and n + N/2 are two passes over
    the same token. `weight` is α of consistency training."""
    count, size = logits.shape
    losses = logits.new_empty(count, dtype=torch.float32)
    divergence = torch.empty_like(losses)
    if count:
        block = next_power_of_two(size)
        with device_guard(logits.device):
            _pair_loss[(count // 2,)](
                logits, logits if bias is None else bias, expected, losses if counts is None else counts, losses,
                divergence, size, count // 2, 1 / count, smoothing, 0.5 * weight,
                BIAS=bias is not None, COUNTS=counts is not None, BLOCK=block, num_warps=max(4, min(32, block // 256)),
            )  # fmt: skip
    return losses, divergence


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


@triton.jit
def _log_softmax(logits, bias, row, size, i, mask, BIAS: tl.constexpr):
    """Return log p of a row of logits; it is finite where the mask is False, too."""
    z = tl.load(logits + row * size + i, mask, 0.0).to(tl.float32)
    if BIAS:
        z += tl.load(bias + i, mask, 0.0).to(tl.float32)
    highest = tl.max(tl.where(mask, z, -float("inf")), 0)
    total = tl.sum(tl.where(mask, tl.exp(z - highest), 0.0), 0)
    return z - highest - tl.log(total)


@triton.jit
def _pair_loss(
    logits, bias, expected, counts, losses, divergence, size, half, row_weight, smoothing, half_weight,
    BIAS: tl.constexpr, COUNTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask = i < size
    first_row, second_row = row.to(tl.int64), row.to(tl.int64) + half
    log_first = _log_softmax(logits, bias, first_row, size, i, mask, BIAS)
    log_second = _log_softmax(logits, bias, second_row, size, i, mask, BIAS)
    p_first, p_second = tl.where(mask, tl.exp(log_first), 0.0), tl.where(mask, tl.exp(log_second), 0.0)
    difference = tl.where(mask, log_first - log_second, 0.0)
    forward, backward = tl.sum(p_first * difference, 0), -tl.sum(p_second * difference, 0)
    pair_divergence = 0.5 * half_weight * (forward + backward)
    tl.store(divergence + first_row, pair_divergence)
    tl.store(divergence + second_row, pair_divergence)
    q = tl.where(i == tl.load(expected + row), 1.0 - smoothing, 0.0) + smoothing / size
    tl.store(losses + first_row, -tl.sum(tl.where(mask, q * log_first, 0.0), 0))
    tl.store(losses + second_row, -tl.sum(tl.where(mask, q * log_second, 0.0), 0))
    towards = half_weight * (p_first - p_second)
    grad_first = p_first * (1.0 + half_weight * (difference - forward)) + towards - q
    grad_second = p_second * (1.0 - half_weight * (difference + backward)) - towards - q
    first_weight, second_weight = row_weight, row_weight
    if COUNTS:
        first_weight *= tl.load(counts + first_row)
        second_weight *= tl.load(counts + second_row)
    dtype = logits.dtype.element_ty
    tl.store(logits + first_row * size + i, (grad_first * first_weight).to(dtype), mask)
    tl.store(logits + second_row * size + i, (grad_second * second_weight).to(dtype), mask)
