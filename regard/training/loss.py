"""Cross-entropy with label smoothing, from the states before the output layer.

    z = W o + b,      q = (1 − ε) · onehot(y) + ε / V
    loss = 1/N Σ_n (log Σ exp z − qᵀz),      ∂loss/∂z = (softmax(z) − q) / N

The vocabulary is the widest thing in a translator: [N, V] numbers are written by every operation on them. So the loss
and its gradient are taken together, a few rows at a time while they are in the cache, and of [N, V] only the gradient
is kept, in the dtype of the product.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from regard.core.product import product_dtype

ROWS = 128
"""rows at a time on the CPU"""


def smoothed_loss(
    output: Tensor, weight: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """(the mean loss over o [N, D]; the loss of each, [N], without gradient). weight [V, D], bias [V], expected [N]."""
    return cast(
        tuple[Tensor, Tensor],
        _Smoothed.apply(output, weight, bias, expected, smoothing),  # type: ignore[no-untyped-call]
    )


class _Smoothed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, output: Tensor, weight: Tensor, bias: Tensor | None, expected: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        device = output.device.type
        dtype = product_dtype(output)
        narrow, table = output.to(dtype), weight.to(dtype)
        logits = narrow @ table.mT  # [N, V], without the bias; to become the gradient
        count, size = logits.shape
        losses = output.new_empty(count, dtype=torch.promote_types(dtype, torch.float32))
        shift = losses.new_zeros(()) if bias is None else bias.to(losses.dtype)
        by_bias = None if bias is None else losses.new_zeros(size)
        spread = losses.new_tensor(-smoothing / (size * max(count, 1)))
        rows = ROWS if device == "cpu" else max(count, 1)
        for first in range(0, count, rows):
            part = slice(first, first + rows)
            losses[part], by_row = _rows(logits[part] + shift, expected[part], smoothing)
            torch.add(spread, by_row, alpha=1 / count, out=logits[part])
            if by_bias is not None:
                by_bias += by_row.sum(0)
        if by_bias is not None:
            by_bias = by_bias / max(count, 1) - smoothing / size
        ctx.save_for_backward(narrow, table, logits)
        ctx.by_bias, ctx.dtypes = by_bias, (output.dtype, weight.dtype)
        ctx.mark_non_differentiable(losses)
        return losses.mean(), losses

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None, None]:  # type: ignore[override]
        output, table, by_logits = ctx.saved_tensors
        found = [by_logits @ table, by_logits.mT @ output, ctx.by_bias]
        kinds = (*ctx.dtypes, gradient.dtype)
        found = [None if x is None else x.to(kind) for x, kind in zip(found, kinds, strict=True)]
        if gradient.is_cuda or gradient != 1:  # the loss itself is what is usually minimized
            found = [None if x is None else x * gradient.to(x.dtype) for x in found]
        return (*found, None, None)  # type: ignore[return-value]


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
