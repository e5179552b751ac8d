"""Cross-entropy with label smoothing, from the states before the output layer.

    z = W o + b,      q = (1 − ε) · onehot(y) + ε / V
    loss = 1/N Σ_n (log Σ exp z − qᵀz),      ∂loss/∂z = (softmax(z) − q) / N

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

CPU_ROWS = 128  # rows that are computed at a time on the CPU


def smoothed_loss(
    output: Tensor, weight: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float, padding: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return (the mean loss; the loss of each row [N], without gradient).

    output [N, D], weight [V, D], bias [V], expected [N]. Rows whose expected token is `padding` have no loss and do not
    count in the mean.
    """
    return cast(
        tuple[Tensor, Tensor],
        _Smoothed.apply(output, weight, bias, expected, smoothing, padding),  # type: ignore[no-untyped-call]
    )


class _Smoothed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        output: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        expected: Tensor,
        smoothing: float,
        padding: int | None,
    ) -> tuple[Tensor, Tensor]:
        dtype = product_dtype(output)
        cast_output, cast_weight = output.to(dtype), weight.to(dtype)
        logits = cast_output @ cast_weight.mT  # [N, V], without the bias; overwritten by their gradient
        loss_dtype = torch.promote_types(dtype, torch.float32)
        counts = None if padding is None else _row_weights(expected != padding, loss_dtype)
        compute = _fused if _has_kernel(logits) else _in_chunks
        losses, grad_bias = compute(logits, None if bias is None else bias.to(loss_dtype), expected, smoothing, counts)
        mean = (losses if counts is None else losses * counts).mean()
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


def _fused(
    logits: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float, counts: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Compute the same as `_in_chunks` by one kernel."""
    from regard.training.loss_device import row_losses_

    losses = row_losses_(logits, bias, expected, smoothing, counts)
    return losses, None if bias is None else logits.sum(0, dtype=bias.dtype)


def _in_chunks(
    logits: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float, counts: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Return (the loss of each row [N]; ∂bias), and overwrite logits [N, V] by the gradient of the mean loss, in which
    a row has the weight `counts` [N], or 1."""
    count, size = logits.shape
    losses = logits.new_empty(count, dtype=torch.promote_types(logits.dtype, torch.float32))
    shift = losses.new_zeros(()) if bias is None else bias
    grad_bias = None if bias is None else losses.new_zeros(size)
    uniform = smoothing / size  # ε / V
    offset = losses.new_full((), -uniform / max(count, 1) if counts is None else 0.0)
    chunk = CPU_ROWS if logits.device.type == "cpu" else max(count, 1)
    for first in range(0, count, chunk):
        rows = slice(first, first + chunk)
        losses[rows], gradient = _rows(logits[rows] + shift, expected[rows], smoothing)
        if counts is not None:
            gradient.sub_(uniform).mul_(counts[rows, None])
        torch.add(offset, gradient, alpha=1 / count, out=logits[rows])
        if grad_bias is not None:
            grad_bias += gradient.sum(0)
    if grad_bias is not None:
        grad_bias = grad_bias / max(count, 1) - (uniform if counts is None else 0.0)
    return losses, grad_bias


def _rows(logits: Tensor, expected: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return (the loss of each row; its gradient, from which ε / V must still be subtracted everywhere).

    At the largest z, softmax is 1 / Σ exp(z − max z), so that log Σ exp z needs no further exponentials.
    """
    target_logits = logits.gather(-1, expected[:, None])  # [n, 1]
    probabilities = torch.softmax(logits, -1)
    losses = (logits.amax(-1) - probabilities.amax(-1).log()) - (1 - smoothing) * target_logits[:, 0]
    if smoothing:
        losses -= smoothing * logits.mean(-1)
    return losses, probabilities.scatter_add_(-1, expected[:, None], torch.full_like(target_logits, smoothing - 1))
