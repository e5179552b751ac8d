"""A linear map used at every step of a recurrence, whose weight gets its gradient once.

    y_t = W x_t + b,      ∂L/∂W = Σ_t (∂L/∂y_t) x_tᵀ = [∂L/∂y_1 … ∂L/∂y_T] [x_1 … x_T]ᵀ

Left to itself, autograd computes one small product a step and adds them up, which reads and writes all of W's gradient
every time. Here the steps only note their inputs and gradients; when the last step's gradient has come, one large
product does the sum. On a GPU, where a product this small costs its launch and little else, autograd is left to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import linear

from regard.runtime.packed_product import Product, product_dtype


@dataclass
class _Notes:
    """What the steps of one forward pass leave for the one product."""

    weight: Tensor
    """W [..., out, in], in the dtype of the products"""
    bias: Tensor | None
    """b [..., out]"""
    steps: int = 0
    backward_pass: int = -1
    """its number: one that asked for the inputs' gradients alone leaves its notes behind"""
    passed: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """of the steps whose gradient has come in it: (x_t, ∂L/∂y_t)"""


class EveryStep:
    """x [..., N, in] → y [..., N, out], for the steps of one forward pass; leading dims are those of W and b."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        noted = torch.is_grad_enabled() and not weight.is_cuda
        if not noted and weight.dim() == 2:
            self._map: Callable[[Tensor], Tensor] = Product(weight, bias)
            return
        dtype = product_dtype(weight)
        ready, ready_bias = weight.to(dtype), None if bias is None else bias.to(dtype)
        if not noted:
            self._map = partial(_product, weight=ready, bias=ready_bias)
            return
        notes = _Notes(ready.detach(), None if ready_bias is None else ready_bias.detach())
        # Every step depends on the anchor, so its backward runs when the gradients of all steps have come, though they
        # hand it none.
        anchor = cast(Tensor, _Anchor.apply(weight, bias, notes))  # type: ignore[no-untyped-call]
        self._map = lambda x: cast(Tensor, _Step.apply(x, anchor, notes))  # type: ignore[no-untyped-call]

    def __call__(self, x: Tensor) -> Tensor:
        return self._map(x)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """W x + b"""
    x = x.to(weight.dtype)
    if weight.dim() == 2:
        return linear(x, weight, bias)
    product = x @ weight.mT
    return product if bias is None else product.add_(bias[..., None, :])


class _Anchor(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, notes: _Notes) -> Tensor:
        ctx.notes, ctx.dtype, ctx.biased = notes, weight.dtype, bias is not None
        return weight.new_zeros(())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:  # type: ignore[override]
        notes = ctx.notes
        inputs, gradients = (torch.cat(parts, -2) for parts in zip(*notes.passed.values(), strict=True))
        notes.passed.clear()
        weight = gradients.mT @ inputs  # [..., out, T·N] [..., T·N, in]
        bias = gradients.sum(-2, dtype=ctx.dtype) if ctx.biased else None
        return weight.to(ctx.dtype), bias, None


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, notes: _Notes) -> Tensor:
        narrow = x.to(notes.weight.dtype)
        ctx.notes, ctx.dtype, ctx.step = notes, x.dtype, notes.steps
        notes.steps += 1
        ctx.save_for_backward(narrow)
        return _product(narrow, notes.weight, notes.bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        notes, now = ctx.notes, torch._C._current_graph_task_id()
        if notes.backward_pass != now:
            notes.backward_pass, notes.passed = now, {}
        gradient = gradient.to(notes.weight.dtype)
        shape = (*notes.weight.shape[:-2], -1)  # all further leading dims count as rows
        notes.passed[ctx.step] = tuple(part.reshape(*shape, part.shape[-1]) for part in (x, gradient))
        return (gradient @ notes.weight).to(ctx.dtype), None, None
