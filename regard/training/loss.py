"""Cross-entropy with label smoothing, from the states before the output layer.

    z = W o + b,      q = (1 − ε) · onehot(y) + ε / V
    loss = 1/N Σ_n (log Σ exp z − qᵀz),      ∂loss/∂z = (softmax(z) − q) / N

The vocabulary is the widest thing in a translator: [N, V] numbers are written by every operation on them. So the loss
and its gradient are taken together, a few rows at a time while they are in the cache (on a GPU by a kernel of their
own), and of [N, V] only the gradient is kept, in the dtype of the product.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from regard.core.kernels.gpu.kernels import without_kernels
from regard.runtime.packed_product import product_dtype

ROWS = 128
"""rows at a time on the CPU"""


def smoothed_loss(
    output: Tensor, weight: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float, padding: int | None = None
) -> tuple[Tensor, Tensor]:
    """(the mean loss over o [N, D]; the loss of each, [N], without gradient). weight [V, D], bias [V], expected [N].

    Where `padding` is expected, nothing is: such rows have no loss and do not count in the mean.
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
        narrow, table = output.to(dtype), weight.to(dtype)
        logits = narrow @ table.mT  # [N, V], without the bias; to become the gradient
        wide = torch.promote_types(dtype, torch.float32)
        counts = None if padding is None else _counts(expected != padding, wide)
        take = _fused if _suits_a_gpu(logits) else _row_by_row
        losses, by_bias = take(logits, None if bias is None else bias.to(wide), expected, smoothing, counts)
        mean = (losses if counts is None else losses * counts).mean()
        ctx.save_for_backward(narrow, table, logits)
        ctx.by_bias, ctx.dtypes = by_bias, (output.dtype, weight.dtype)
        losses = losses if counts is None else losses.masked_fill_(counts == 0, 0)
        ctx.mark_non_differentiable(losses)
        return mean, losses

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        output, table, by_logits = ctx.saved_tensors
        by_output, by_bias = by_logits @ table, ctx.by_bias
        if gradient.is_cuda or gradient != 1:  # the loss itself is what is usually minimized
            by_output, output = (x * gradient.to(x.dtype) for x in (by_output, output))
            by_bias = None if by_bias is None else by_bias * gradient
        by_weight = by_logits.mT @ output
        kinds = (*ctx.dtypes, gradient.dtype)
        found = zip((by_output, by_weight, by_bias), kinds, strict=True)
        return (*(None if x is None else x.to(kind) for x, kind in found), None, None, None)


def _counts(real: Tensor, dtype: torch.dtype) -> Tensor:
    """How much each row counts in the mean over all N: 0, or N / how many are real."""
    return real * (len(real) / real.sum(dtype=dtype).clamp(min=1))


def _suits_a_gpu(logits: Tensor) -> bool:
    if logits.dtype is torch.float64 or without_kernels(logits.device) is not None:
        return False
    from regard.training.loss_device import WIDEST

    return logits.shape[1] <= WIDEST


def _fused(
    logits: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float, counts: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """As `_row_by_row`, by one kernel."""
    from regard.training.loss_device import rows

    losses = rows(logits, bias, expected, smoothing, counts)
    return losses, None if bias is None else logits.sum(0, dtype=bias.dtype)


def _row_by_row(
    logits: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float, counts: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """(the loss of each row [N]; ∂bias). logits [N, V] become the gradient of the mean, in which a row counts `counts`
    [N] times, or once."""
    count, size = logits.shape
    losses = logits.new_empty(count, dtype=torch.promote_types(logits.dtype, torch.float32))
    shift = losses.new_zeros(()) if bias is None else bias
    by_bias = None if bias is None else losses.new_zeros(size)
    even = smoothing / size  # what every token has of q
    spread = losses.new_full((), -even / max(count, 1) if counts is None else 0.0)
    rows = ROWS if logits.device.type == "cpu" else max(count, 1)
    for first in range(0, count, rows):
        part = slice(first, first + rows)
        losses[part], by_row = _rows(logits[part] + shift, expected[part], smoothing)
        if counts is not None:
            by_row.sub_(even).mul_(counts[part, None])
        torch.add(spread, by_row, alpha=1 / count, out=logits[part])
        if by_bias is not None:
            by_bias += by_row.sum(0)
    if by_bias is not None:
        by_bias = by_bias / max(count, 1) - (even if counts is None else 0.0)
    return losses, by_bias


def _rows(logits: Tensor, expected: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """(the loss of each row; its gradient, but for the same ε / V everywhere)

    At the largest z, softmax is 1 / Σ exp(z − max z): log Σ exp z costs no exponentials of its own.
    """
    right = logits.gather(-1, expected[:, None])  # [n, 1]
    chances = torch.softmax(logits, -1)
    losses = (logits.amax(-1) - chances.amax(-1).log()) - (1 - smoothing) * right[:, 0]
    if smoothing:
        losses -= smoothing * logits.mean(-1)
    return losses, chances.scatter_add_(-1, expected[:, None], torch.full_like(right, smoothing - 1))
