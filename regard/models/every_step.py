"""A linear map used at every step of a recurrence, whose weight gets its gradient once.

    y_t = W x_t + b,      ∂L/∂W = Σ_t (∂L/∂y_t) x_tᵀ = [∂L/∂y_1 … ∂L/∂y_T] [x_1 … x_T]ᵀ

Left to itself, autograd computes one small product a step and adds them up, which reads and writes all of W's gradient
every time. Here the steps only note their inputs and gradients; when the last step's gradient has come, one large
product does the sum. On a GPU, where a product this small costs its launch and little else, autograd is left to itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor


@dataclass
class _Notes:
    """What the steps of one forward pass leave for the one product."""

    weight: Tensor
    """W [..., out, in], in the dtype of the products"""
    steps: int = 0
    passed: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """of the steps whose gradient has come: (x_t, ∂L/∂y_t)"""


class EveryStep:
    """x [..., N, in] → y [..., N, out], for the steps of one forward pass; leading dims are those of W."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        device = weight.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        self._weight, self._bias = weight.to(dtype), bias
        if not weight.is_cuda:
            self._notes = _Notes(self._weight.detach())
            # Every step depends on the anchor, so its backward runs when the gradients of all steps have come.
            self._anchor = cast(Tensor, _Anchor.apply(weight, self._notes))  # type: ignore[no-untyped-call]

    def __call__(self, x: Tensor) -> Tensor:
        if self._weight.is_cuda:
            y = x.to(self._weight.dtype) @ self._weight.mT
        else:
            y = cast(Tensor, _Step.apply(x, self._anchor, self._notes))  # type: ignore[no-untyped-call]
        return y if self._bias is None else y + self._bias


class _Anchor(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, notes: _Notes) -> Tensor:
        ctx.notes, ctx.dtype = notes, weight.dtype
        return weight.new_zeros(())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        notes = ctx.notes
        inputs, gradients = (torch.cat(parts, -2) for parts in zip(*notes.passed.values(), strict=True))
        weight = gradients.mT @ inputs  # [..., out, T·N] [..., T·N, in]
        notes.passed.clear()
        return weight.to(ctx.dtype), None


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, notes: _Notes) -> Tensor:
        narrow = x.to(notes.weight.dtype)
        ctx.notes, ctx.dtype, ctx.step = notes, x.dtype, notes.steps
        notes.steps += 1
        ctx.save_for_backward(narrow)
        return narrow @ notes.weight.mT

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        gradient = gradient.to(ctx.notes.weight.dtype)
        ctx.notes.passed[ctx.step] = (x, gradient)
        return (gradient @ ctx.notes.weight).to(ctx.dtype), gradient.new_zeros((), dtype=torch.float32), None
