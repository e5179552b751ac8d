"""Cross-entropy with label smoothing, from the states before the output layer.

    z = W o + b,      q = (1 − ε) · onehot(y) + ε / V
    loss = 1/N Σ_n (log Σ exp z − qᵀz),      ∂loss/∂z = (softmax(z) − q) / N

With a teacher, its probabilities t are mixed into the target: q' = (1 − λ) q + λ t in place of q (target.py).

The logits [N, V] are the largest tensor of a translator, and every operation would write one of their size. So the loss
and its gradient are computed together, for a few rows at a time while they are in the cache (on a GPU by a fused
kernel); only the gradient is saved, in place of the logits and in their dtype.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from regard.core.kernels.gpu.kernels import why_no_triton
from regard.runtime.packed_product import product_dtype
from regard.training.consistency import paired_rows
from regard.training.target import Target

CPU_ROWS = 128  # rows that are computed at a time on the CPU


def smoothed_loss(
    output: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    expected: Tensor,
    smoothing: float,
    padding: int | None = None,
    consistency: float = 0.0,
    teacher: Tensor | None = None,
    teacher_weight: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Return (the mean loss; the cross-entropy of each row [N], without gradient).

    output [N, D], weight [V, D], bias [V], expected [N]. Rows whose expected token is `padding` have no loss and do not
    count in the mean. With `consistency`, rows n and n + N/2 are two passes over the same token, and their divergence
    with this weight is part of the mean loss (consistency.py).

    With `teacher` t [N, V], the target is q' = (1 − λ) q + λ t for λ = `teacher_weight` (target.py). Each row of t has
    probabilities, which sum to 1, or anything finite for padding. With `consistency`, t is [N/2, V]: row n is the
    target of both passes over a token. t gets no gradient.
    """
    target = Target(expected, smoothing)
    if teacher is not None and teacher_weight:
        shape = (len(expected) // (2 if consistency else 1), len(weight))
        if teacher.shape != shape:
            raise ValueError(f"teacher has shape {tuple(teacher.shape)}; expected {shape}")
        target = Target(expected, smoothing, teacher, teacher_weight)
    return cast(
        tuple[Tensor, Tensor],
        _Smoothed.apply(output, weight, bias, target, padding, consistency),  # type: ignore[no-untyped-call]
    )


class _Smoothed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        output: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Target,
        padding: int | None,
        consistency: float,
    ) -> tuple[Tensor, Tensor]:
        dtype = product_dtype(output)
        cast_output, cast_weight = output.to(dtype), weight.to(dtype)
        logits = cast_output @ cast_weight.mT  # [N, V], without the bias; overwritten by their gradient
        loss_dtype = torch.promote_types(dtype, torch.float32)
        counts = None if padding is None else _row_weights(target.expected != padding, loss_dtype)
        bias = None if bias is None else bias.to(loss_dtype)
        if consistency:
            compute_pairs = _fused_pairs if _has_kernel(logits) else _in_paired_chunks
            losses, divergence, grad_bias = compute_pairs(logits, bias, target, counts, consistency)
        else:
            compute = _fused if _has_kernel(logits) else _in_chunks
            losses, grad_bias = compute(logits, bias, target, counts)
            divergence = None
        row_losses = losses if divergence is None else losses + divergence
        mean = (row_losses if counts is None else row_losses * counts).mean()
        ctx.save_for_backward(cast_output, cast_weight, logits)
        ctx.grad_bias, ctx.dtypes = grad_bias, (output.dtype, weight.dtype)
        losses = losses if counts is None else losses.masked_fill_(counts == 0, 0)
        ctx.mark_non_differentiable(losses)
        return mean, losses

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        output, weight, grad_logits = ctx.saved_tensors
        grad_output, grad_bias = grad_logits @ weight, ctx.grad_bias
        if gradient.is_cuda or gradient != 1:  # on the CPU it is usually 1: the loss itself is minimized
            grad_output, output = (x * gradient.to(x.dtype) for x in (grad_output, output))
            grad_bias = None if grad_bias is None else grad_bias * gradient
        grad_weight = grad_logits.mT @ output
        dtypes = (*ctx.dtypes, gradient.dtype)
        gradients = zip((grad_output, grad_weight, grad_bias), dtypes, strict=True)
        return (*(None if x is None else x.to(dtype) for x, dtype in gradients), None, None, None)


def _row_weights(real: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the weight of each row in the mean over all N: 0 for padding, N / (number of real rows) for others."""
    return real * (len(real) / real.sum(dtype=dtype).clamp(min=1))


def _has_kernel(logits: Tensor) -> bool:
    if logits.dtype is torch.float64 or why_no_triton(logits.device) is not None:
        return False
    from regard.training.loss_device import MAX_VOCABULARY

    return logits.shape[1] <= MAX_VOCABULARY


def _fused(logits: Tensor, bias: Tensor | None, target: Target, counts: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Compute the same as `_in_chunks` by one kernel."""
    from regard.training.loss_device import row_losses_

    losses = row_losses_(logits, bias, target, counts)
    return losses, None if bias is None else logits.sum(0, dtype=bias.dtype)


def _fused_pairs(
    logits: Tensor, bias: Tensor | None, target: Target, counts: Tensor | None, consistency: float
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Compute the same as `_in_paired_chunks` by one kernel."""
    from regard.training.loss_device import paired_losses_

    losses, divergence = paired_losses_(logits, bias, target, counts, consistency)
    return losses, divergence, None if bias is None else logits.sum(0, dtype=bias.dtype)


def _in_chunks(
    logits: Tensor, bias: Tensor | None, target: Target, counts: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Return (the loss of each row [N]; ∂bias), and overwrite logits [N, V] by the gradient of the mean loss, in which
    a row has the weight `counts` [N], or 1."""
    count, size = logits.shape
    losses = logits.new_empty(count, dtype=torch.promote_types(logits.dtype, torch.float32))
    shift = losses.new_zeros(()) if bias is None else bias
    grad_bias = None if bias is None else losses.new_zeros(size)
    uniform = target.smoothing / size  # ε / V
    offset = losses.new_full((), -uniform / max(count, 1) if counts is None else 0.0)
    chunk = CPU_ROWS if logits.device.type == "cpu" else max(count, 1)
    for first in range(0, count, chunk):
        rows = slice(first, first + chunk)
        losses[rows], gradient = _rows(logits[rows] + shift, target[rows])
        if counts is not None:
            gradient.sub_(uniform).mul_(counts[rows, None])
        torch.add(offset, gradient, alpha=1 / count, out=logits[rows])
        if grad_bias is not None:
            grad_bias += gradient.sum(0)
    if grad_bias is not None:
        grad_bias = grad_bias / max(count, 1) - (uniform if counts is None else 0.0)
    return losses, grad_bias


def _in_paired_chunks(
    logits: Tensor, bias: Tensor | None, target: Target, counts: Tensor | None, consistency: float
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return (the cross-entropy of each row [N]; half of its pair's divergence [N]; ∂bias), and overwrite logits [N, V]
    by the gradient of the mean loss. The first N/2 rows are the first pass."""
    count, size = logits.shape
    half = count // 2
    losses = logits.new_empty(count, dtype=torch.promote_types(logits.dtype, torch.float32))
    divergence = torch.empty_like(losses)
    shift = losses.new_zeros(()) if bias is None else bias
    grad_bias = None if bias is None else losses.new_zeros(size)
    chunk = CPU_ROWS // 2 if logits.device.type == "cpu" else max(half, 1)
    for first in range(0, half, chunk):
        rows, others = slice(first, min(first + chunk, half)), slice(half + first, min(half + first + chunk, count))
        terms = paired_rows(logits[rows] + shift, logits[others] + shift, target[rows], consistency)
        losses[rows], losses[others], divergence[rows] = terms[:3]
        for place, gradient in zip((rows, others), terms[3:], strict=True):
            if counts is not None:
                gradient.mul_(counts[place, None])
            gradient.div_(count)
            logits[place] = gradient.to(logits.dtype)
            if grad_bias is not None:
                grad_bias += gradient.sum(0)
    divergence[:half] *= 0.5
    divergence[half:] = divergence[:half]
    return losses, divergence, grad_bias


def _rows(logits: Tensor, target: Target) -> tuple[Tensor, Tensor]:
    """Return (the loss of each row; its gradient, from which ε / V must still be subtracted everywhere).

    At the largest z, softmax is 1 / Σ exp(z − max z), so that log Σ exp z needs no further exponentials.
    """
    expected, smoothing = target.expected[:, None], target.smoothing
    target_logits = logits.gather(-1, expected)  # [n, 1]
    probabilities = torch.softmax(logits, -1)
    log_total = logits.amax(-1) - probabilities.amax(-1).log()
    losses = log_total - (1 - smoothing) * target_logits[:, 0]
    if smoothing:
        losses -= smoothing * logits.mean(-1)
    gradient = probabilities.scatter_add_(-1, expected, torch.full_like(target_logits, smoothing - 1))
    change = target.teacher_change(logits.dtype)
    if change is not None:
        losses -= (change * (logits - log_total[:, None])).sum(-1)
        gradient -= change
    return losses, gradient
