"""The fused kernels of the smoothed cross-entropy, and of that with consistency training (consistency.py): one pass
over logits [N, V], which overwrites them by their gradient. With TEACHER, the target is mixed with a teacher's
probabilities (target.py)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.core.kernels.gpu.blocks import next_power_of_two
from regard.runtime.device_guard import device_guard
from regard.training.target import Target

MAX_VOCABULARY = 1 << 16  # the largest vocabulary whose row of logits one program can process


def row_losses_(logits: Tensor, bias: Tensor | None, target: Target, counts: Tensor | None) -> Tensor:
    """Return the loss of each row [N]; overwrite logits [N, V], which lack the bias [V], by the gradient of the mean
    loss, in which a row has the weight `counts` [N], or 1."""
    count = len(logits)
    losses = logits.new_empty(count, dtype=torch.float32)
    _launch(_row_loss, count, 512, logits, bias, target, counts, losses)
    return losses


def paired_losses_(
    logits: Tensor, bias: Tensor | None, target: Target, counts: Tensor | None, weight: float
) -> tuple[Tensor, Tensor]:
    """Return the same, and each row's half of the divergence of its pair [N], if rows n and n + N/2 are two passes over
    the same token. `weight` is α of consistency training."""
    half = len(logits) // 2
    losses = logits.new_empty(len(logits), dtype=torch.float32)
    divergence = torch.empty_like(losses)
    _launch(_pair_loss, half, 256, logits, bias, target, counts, losses, divergence, half, 0.5 * weight)
    return losses, divergence


def _launch(
    kernel, programs: int, warp_size: int, logits: Tensor, bias: Tensor | None, target: Target, counts: Tensor | None,
    *others: Tensor | float,
) -> None:  # fmt: skip
    """Run one program for each row or pair, with a warp for each `warp_size` logits of a row."""
    if not programs:
        return
    (count, size), teacher = logits.shape, target.teacher
    block = next_power_of_two(size)
    with device_guard(logits.device):
        kernel[(programs,)](
            logits, logits if bias is None else bias, target.expected, logits if counts is None else counts,
            logits if teacher is None else teacher.contiguous(), *others, size, 1 / count, target.smoothing,
            target.teacher_weight, BIAS=bias is not None, COUNTS=counts is not None, TEACHER=teacher is not None,
            BLOCK=block, num_warps=max(4, min(32, block // warp_size)),
        )  # fmt: skip


@triton.jit
def _row_loss(
    logits, bias, expected, counts, teacher, losses, size, row_weight, smoothing, teacher_weight,
    BIAS: tl.constexpr, COUNTS: tl.constexpr, TEACHER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask = i < size
    first = row.to(tl.int64) * size
    pointers = logits + first + i
    z = tl.load(pointers, mask, 0.0).to(tl.float32)
    if BIAS:
        z += tl.load(bias + i, mask, 0.0).to(tl.float32)
    is_target = i == tl.load(expected + row)
    highest = tl.max(tl.where(mask, z, -float("inf")), 0)
    exponentials = tl.where(mask, tl.exp(z - highest), 0.0)
    total = tl.sum(exponentials, 0)
    target_z = (1.0 - smoothing) * tl.sum(tl.where(is_target, z, 0.0), 0) + smoothing * tl.sum(z, 0) / size  # qᵀz
    if TEACHER:
        t = tl.load(teacher + first + i, mask, 0.0).to(tl.float32)
        q = tl.where(is_target, 1.0 - smoothing, 0.0) + smoothing / size
        change = tl.where(mask, teacher_weight * (t - q), 0.0)  # q' − q, whose sum is 0
        target_z += tl.sum(change * (z - highest - tl.log(total)), 0)
    tl.store(losses + row, highest + tl.log(total) - target_z)
    if COUNTS:
        row_weight *= tl.load(counts + row)
    gradient = exponentials / total - smoothing / size - tl.where(is_target, 1.0 - smoothing, 0.0)
    if TEACHER:
        gradient -= change
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
    logits, bias, expected, counts, teacher, losses, divergence, half, half_weight, size, row_weight, smoothing,
    teacher_weight, BIAS: tl.constexpr, COUNTS: tl.constexpr, TEACHER: tl.constexpr, BLOCK: tl.constexpr,
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
    if TEACHER:
        q += teacher_weight * (tl.load(teacher + first_row * size + i, mask, 0.0).to(tl.float32) - q)
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
