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
from torch.nn.functional import linear

ROWS = 64
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
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else output.dtype
        narrow, table = output.to(dtype), weight.to(dtype)
        logits = linear(narrow, table, None if bias is None else bias.to(dtype))  # [N, V], to become the gradient
        count, size = logits.shape
        losses = output.new_empty(count, dtype=torch.promote_types(dtype, torch.float32))
        by_bias = None if bias is None else losses.new_zeros(size)
        rows = ROWS if device == "cpu" else max(count, 1)
        for first in range(0, count, rows):
            part = slice(first, first + rows)
            losses[part], gradient = _rows(logits[part].to(losses.dtype), expected[part], smoothing)
            torch.mul(gradient, 1 / count, out=logits[part])
            if by_bias is not None:
                by_bias += gradient.sum(0)
        if by_bias is not None:
            by_bias /= count
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
    """(the loss of each row, its gradient)"""
    size = logits.shape[-1]
    chances = torch.log_softmax(logits, -1)
    right = chances.gather(-1, expected[:, None])  # [n, 1]
    losses = (smoothing - 1) * right[:, 0]
    if smoothing:
        losses -= (smoothing / size) * chances.sum(-1)
    gradient = chances.exp_()
    if smoothing:
        gradient -= smoothing / size
    gradient.scatter_add_(-1, expected[:, None], torch.full_like(right, smoothing - 1))
    return losses, gradient
