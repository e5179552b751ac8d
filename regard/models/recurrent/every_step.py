"""A linear map used at every step of a recurrence, whose weight gets its gradient once.

    y_t = W x_t + b,      ∂L/∂W = Σ_t (∂L/∂y_t) x_tᵀ = [∂L/∂y_1 … ∂L/∂y_T] [x_1 … x_T]ᵀ

Autograd alone computes one small product per step and adds them up, which reads and writes all of W's gradient every
time. Here the steps only record their inputs and gradients; after the last step's gradient, one large product computes
the sum. On a GPU, where a product this small costs little more than its launch, autograd does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import linear

from regard.runtime.packed_product import PackedProduct, product_dtype


@dataclass
class _Record:
    """What the steps of one forward pass record for the large product."""

    weight: Tensor
    """W [..., out, in], in the dtype of the products"""
    bias: Tensor | None
    """b [..., out]"""
    steps: int = 0
    backward_pass: int = -1
    """autograd's number of the backward pass that `passed` belongs to; a pass that computes only the inputs' gradients
    leaves its entries behind"""
    passed: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """(x_t, ∂L/∂y_t) of the steps that this backward pass has done, by their number"""


class EveryStep:
    """The map of x [..., N, in] to y = W x + b [..., N, out] for the steps of one forward pass.

    Leading dims are those of W and b.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        recorded = torch.is_grad_enabled() and not weight.is_cuda
        if not recorded and weight.dim() == 2:
            self._map: Callable[[Tensor], Tensor] = PackedProduct(weight, bias)
            return
        dtype = product_dtype(weight)
        cast_weight, cast_bias = weight.to(dtype), None if bias is None else bias.to(dtype)
        if not recorded:
            self._map = partial(_product, weight=cast_weight, bias=cast_bias)
            return
        record = _Record(cast_weight.detach(), None if cast_bias is None else cast_bias.detach())
        # Every step depends on the anchor, so the anchor's backward runs after those of all steps, although they pass
        # no gradient to it.
        anchor = cast(Tensor, _StepsAnchor.apply(weight, bias, record))  # type: ignore[no-untyped-call]
        self._map = lambda x: cast(Tensor, _Step.apply(x, anchor, record))  # type: ignore[no-untyped-call]

    def __call__(self, x: Tensor) -> Tensor:
        return self._map(x)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return W x + b."""
    x = x.to(weight.dtype)
    if weight.dim() == 2:
        return linear(x, weight, bias)
    product = x @ weight.mT
    return product if bias is None else product.add_(bias[..., None, :])


class _StepsAnchor(torch.autograd.Function):
    """A scalar that all steps depend on; its backward computes the gradients of W and b."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, record: _Record) -> Tensor:
        ctx.record, ctx.dtype, ctx.biased = record, weight.dtype, bias is not None
        return weight.new_zeros(())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:  # type: ignore[override]
        record = ctx.record
        inputs, gradients = (torch.cat(parts, -2) for parts in zip(*record.passed.values(), strict=True))
        record.passed.clear()
        weight = gradients.mT @ inputs  # [..., out, T·N] [..., T·N, in]
        bias = gradients.sum(-2, dtype=ctx.dtype) if ctx.biased else None
        return weight.to(ctx.dtype), bias, None


class _Step(torch.autograd.Function):
    """W x + b of one step, which records x and the gradient for the anchor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, record: _Record) -> Tensor:
        cast_x = x.to(record.weight.dtype)
        ctx.record, ctx.dtype, ctx.step = record, x.dtype, record.steps
        record.steps += 1
        ctx.save_for_backward(cast_x)
        return _product(cast_x, record.weight, record.bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        record, backward_pass = ctx.record, torch._C._current_graph_task_id()
        if record.backward_pass != backward_pass:
            record.backward_pass, record.passed = backward_pass, {}
        gradient = gradient.to(record.weight.dtype)
        shape = (*record.weight.shape[:-2], -1)  # all further leading dims count as rows
        record.passed[ctx.step] = tuple(part.reshape(*shape, part.shape[-1]) for part in (x, gradient))
        return (gradient @ record.weight).to(ctx.dtype), None, None
