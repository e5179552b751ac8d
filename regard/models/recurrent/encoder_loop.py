"""All steps of a GRU of one or two directions as one function, for a GPU: two launches a step, and two back.

    a = W_x x,   b = W_h h + b_h       h' = GRU(a, b, h)

Both directions take their steps together, and lengths need not be known to the host.
B sentences, S places, H features, `ways` directions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.models.recurrent.step_product import Product, beside
from regard.runtime.device_guard import device_guard

BLOCK = 128
"""features that a program takes at once"""


def encode(gates: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """a [S, B, ways, 3H], lengths [B], W_h [ways, 3H, H], b_h [ways, 3H] → (states [S, B, ways, H], 0 where padding is;
    the last of each direction [B, ways, H])"""
    with device_guard(gates.device):
        found: tuple[Tensor, Tensor] = _Loop.apply(gates, lengths, weight, bias)  # type: ignore[no-untyped-call]
    return found


class _Loop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        from regard.models.recurrent import encoder_device as device

        gates, bias = gates.contiguous(), bias.contiguous()
        (steps, batch, ways, _), hidden = gates.shape, weight.shape[2]
        states = gates.new_empty(steps, batch, ways, hidden)
        kept = gates.new_empty(steps, batch, ways, 4 * hidden)
        last = gates.new_zeros(batch, ways, hidden)
        both = _Both(weight, batch)
        for t in range(steps):
            if t:
                both(states, t - 1)
            device.encode_forward[(-(-hidden // BLOCK), batch, ways)](
                gates, both.product.parts, bias, lengths, states, last, kept, t, steps, batch, hidden, ways,
                *both.layout, STATE=both.product.count if t else 0, BLOCK=BLOCK,
            )  # fmt: skip
        ctx.save_for_backward(lengths, weight, states, kept)
        return states, last

    @staticmethod
    def backward(ctx: Any, by_states: Tensor, by_last: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        from regard.models.recurrent import encoder_device as device

        refuse_second_order()
        lengths, weight, states, kept = ctx.saved_tensors
        steps, batch, ways, hidden = states.shape
        by_states, by_last = by_states.contiguous(), by_last.contiguous()
        by_gates = states.new_empty(2, steps, batch, ways, 3 * hidden)  # ∂a, ∂b
        through = torch.empty_like(by_last)
        both = _Both(weight.mT, batch)
        for t in reversed(range(steps)):
            later = t < steps - 1
            if later:
                both(by_gates[1], t + 1)
            device.encode_backward[(-(-hidden // BLOCK), batch, ways)](
                by_states, by_last, both.product.parts, through, kept, states, lengths, by_gates, t, steps, batch,
                hidden, ways, by_gates.stride(0), *both.layout,
                CARRIED=both.product.count if later else 0, BLOCK=BLOCK,
            )  # fmt: skip
        by_state = by_gates[1].flatten(0, 1)  # [S · B, ways, 3H]
        before = _before(states).flatten(0, 1)  # [S · B, ways, H]
        return by_gates[0], None, by_state.permute(1, 2, 0) @ before.transpose(0, 1), by_state.sum(0)


class _Both:
    """x [B, K] of each direction times its own weight [ways, N, K]."""

    def __init__(self, weight: Tensor, batch: int) -> None:
        one, self.border = (weight[0], 0) if len(weight) == 1 else beside(weight[0], weight[1])
        self.product = Product(one, batch)

    def __call__(self, states: Tensor, t: int) -> None:
        """states [S, B, ways, K] as they are for each direction after its step t"""
        first, border, behind = states[t, :, 0], None, 0
        if states.shape[2] == 2:
            second = states[len(states) - 1 - t, :, 1]
            border, behind = self.border, int(second.storage_offset() - first.storage_offset())
        self.product(first, border, behind)

    @property
    def layout(self) -> tuple[int, int, int]:
        """(the column with which the second direction begins, how far rows lie apart, how far parts)"""
        return self.border, self.product.columns, self.product.apart


def _before(states: Tensor) -> Tensor:
    """[S, B, ways, H] → from which state each direction came: the one beside, 0 at first"""
    before = torch.zeros_like(states)
    before[1:, :, 0] = states[:-1, :, 0]
    if states.shape[2] == 2:
        before[:-1, :, 1] = states[1:, :, 1]
    return before
