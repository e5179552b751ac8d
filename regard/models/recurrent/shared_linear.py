"""A linear map used at every step of a recurrence, whose weight gets its gradient once.

    y_t = W x_t + b,      ∂L/∂W = Σ_t (∂L/∂y_t) x_tᵀ = [∂L/∂y_1 … ∂L/∂y_T] [x_1 … x_T]ᵀ

Autograd alone computes one small product per step and adds them up, which reads and writes all of W's gradient every
time. Here the steps only record their inputs and gradients; after the last step's gradient, one large product computes
the sum. On a GPU, where a product this small costs little more than its launch, autograd does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import linear

from regard.runtime.packed_product import PackedProduct, product_dtype
from regard.runtime.shared_gradients import StepRecords, anchor_of

_Records = StepRecords[tuple[Tensor, Tensor]]  # (x_t, ∂L/∂y_t) of each step


class SharedLinear:
    """The map of x [..., N, in] to y = W x + b [..., N, out] for the steps of one forward pass. Leading dims are those
    of W and b."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        trained = weight.requires_grad or (bias is not None and bias.requires_grad)
        recorded = torch.is_grad_enabled() and trained and not weight.is_cuda
        if not recorded and weight.dim() == 2:
            self._map: Callable[[Tensor], Tensor] = PackedProduct(weight, bias)
            return
        dtype = product_dtype(weight)
        cast_weight, cast_bias = weight.to(dtype), None if bias is None else bias.to(dtype)
        if not recorded:
            self._map = partial(_product, weight=cast_weight, bias=cast_bias)
            return
        records, numbers = _Records(), count()
        gradients = partial(_weight_gradients, dtype=weight.dtype, biased=bias is not None)
        anchor = anchor_of(records, gradients, weight, bias)
        self._map = lambda x: cast(
            Tensor,
            _Step.apply(x.to(dtype), anchor, records, next(numbers), cast_weight, cast_bias),  # type: ignore[no-untyped-call]
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self._map(x)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return W x + b."""
    x = x.to(weight.dtype)
    if weight.dim() == 2:
        return linear(x, weight, bias)
    product = x @ weight.mT
    return product if bias is None else product.add_(bias[..., None, :])


def _weight_gradients(
    records: list[tuple[Tensor, Tensor]], dtype: torch.dtype, biased: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of W and b, summed over the steps."""
    inputs, gradients = (torch.cat(parts, -2) for parts in zip(*records, strict=True))
    weight = gradients.mT @ inputs  # [..., out, T·N] [..., T·N, in]
    return weight.to(dtype), gradients.sum(-2, dtype=dtype) if biased else None


class _Step(torch.autograd.Function):
    """W x + b of one step, which records x and the gradient for the anchor."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, anchor: Tensor, records: _Records, step: int, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        ctx.records, ctx.step = records, step
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        shape = (*weight.shape[:-2], -1)  # all further leading dims count as rows
        grad_anchor = ctx.records.add(ctx.step, tuple(part.reshape(*shape, part.shape[-1]) for part in (x, gradient)))
        return gradient @ weight, grad_anchor, None, None, None, None
