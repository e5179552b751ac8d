"""Dropout that does not wait for its random numbers.

On the CPU torch draws a 32-bit number for every feature, which in a small model takes longer than the products around
it. Eight bits are enough: eight features share a 64-bit draw. The chance is a multiple of 1/256, and what is kept is
scaled by the chance as it is.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.core.checks import share


class _Kept(torch.autograd.Function):
    """states ⊙ kept · scale. Autograd alone would keep the product of the last two: four bytes a feature, not one."""

    @staticmethod
    def forward(ctx, states, kept, scale):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(kept)
        ctx.scale = scale
        return states * (kept * scale).to(states.dtype)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (kept,) = ctx.saved_tensors
        return gradient * (kept * ctx.scale).to(gradient.dtype), None, None


class Dropout(nn.Module):
    """In training, a share of the features is set to 0 and the rest scaled up; otherwise nothing happens."""

    def __init__(self, chance: float) -> None:
        super().__init__()
        self.chance = share("dropout", chance)

    def forward(self, states: Tensor) -> Tensor:
        if not self.training or self.chance == 0:
            return states
        if states.device.type != "cpu":
            return nn.functional.dropout(states, self.chance)
        least = min(255, round(self.chance * 256))
        drawn = torch.empty((states.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = drawn.view(torch.uint8)[: states.numel()].view(states.shape) >= least
        scaled: Tensor = _Kept.apply(states, kept, 256 / (256 - least))  # type: ignore[no-untyped-call]
        return scaled

    def extra_repr(self) -> str:
        return f"{self.chance}"
