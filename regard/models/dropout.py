"""Dropout with cheap random numbers on the CPU.

On the CPU torch draws a 32-bit number for every feature, which in a small model takes longer than the products around
it. Eight bits are enough: eight features share a 64-bit draw. The probability is rounded to a multiple of 1/256, and
the remaining features are scaled by the rounded probability.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.core.checks import fraction


class _MaskedScale(torch.autograd.Function):
    """states ⊙ mask · scale. Autograd alone would save mask · scale: four bytes per feature instead of one."""

    @staticmethod
    def forward(ctx, states, mask, scale):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return states * (mask * scale).to(states.dtype)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (mask,) = ctx.saved_tensors
        return gradient * (mask * ctx.scale).to(gradient.dtype), None, None


class Dropout(nn.Module):
    """Sets a fraction `p` of the features to 0 in training and scales the others up; the identity otherwise."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = fraction("dropout", p)

    def forward(self, states: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return states
        if states.device.type != "cpu":
            return nn.functional.dropout(states, self.p)
        threshold = min(255, round(self.p * 256))
        random_bits = torch.empty((states.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        mask = random_bits.view(torch.uint8)[: states.numel()].view(states.shape) >= threshold
        scaled: Tensor = _MaskedScale.apply(states, mask, 256 / (256 - threshold))  # type: ignore[no-untyped-call]
        return scaled

    def extra_repr(self) -> str:
        return f"{self.p}"
