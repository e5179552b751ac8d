"""All steps of a GRU of one or two directions as one autograd function, for a GPU: two launches per step, both ways.

    a = W_x x,   b = W_h h + b_h       h' = GRU(a, b, h)

Both directions run in the same launches, and lengths need not be known to the host.
B sentences, S positions, H features, W directions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.models.recurrent.step_product import GpuStepProduct, stacked
from regard.runtime.device_guard import device_guard

BLOCK = 128  # features per program


def encode(gates: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return the states [S, B, W, H], 0 at padding, and the final state of each direction [B, W, H]. `gates` are a [S,
    B, W, 3H], `lengths` [B], `weight` is W_h [W, 3H, H], `bias` b_h [W, 3H]."""
    with device_guard(gates.device):
        outputs: tuple[Tensor, Tensor] = _FusedEncoder.apply(gates, lengths, weight, bias)  # type: ignore[no-untyped-call]
    return outputs


class _FusedEncoder(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        from regard.models.recurrent import encoder_device as device

        gates, bias = gates.contiguous(), bias.contiguous()
        (steps, batch, directions, _), hidden = gates.shape, weight.shape[2]
        states = gates.new_empty(steps, batch, directions, hidden)
        saved_gates = gates.new_empty(steps, batch, directions, 4 * hidden)
        last = gates.new_zeros(batch, directions, hidden)
        products = _DirectionProducts(weight, batch)
        for t in range(steps):
            if t:
                products(states, t - 1)
            device.encode_forward[(-(-hidden // BLOCK), batch, directions)](
                gates, products.product.parts, bias, lengths, states, last, saved_gates, t, steps, batch, hidden,
                directions, *products.layout, STATE_PARTS=products.product.count if t else 0, BLOCK=BLOCK,
            )  # fmt: skip
        ctx.save_for_backward(lengths, weight, states, saved_gates)
        return states, last

    @staticmethod
    def backward(ctx: Any, grad_states: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        from regard.models.recurrent import encoder_device as device

        refuse_second_order()
        lengths, weight, states, saved_gates = ctx.saved_tensors
        steps, batch, directions, hidden = states.shape
        grad_states, grad_last = grad_states.contiguous(), grad_last.contiguous()
        grad_gates = states.new_empty(2, steps, batch, directions, 3 * hidden)  # ∂a, ∂b
        grad_state = torch.empty_like(grad_last)
        products = _DirectionProducts(weight.mT, batch)
        for t in reversed(range(steps)):
            has_next = t < steps - 1
            if has_next:
                products(grad_gates[1], t + 1)
            device.encode_backward[(-(-hidden // BLOCK), batch, directions)](
                grad_states, grad_last, products.product.parts, grad_state, saved_gates, states, lengths, grad_gates,
                t, steps, batch, hidden, directions, grad_gates.stride(0), *products.layout,
                CARRIED_PARTS=products.product.count if has_next else 0, BLOCK=BLOCK,
            )  # fmt: skip
        grad_b = grad_gates[1].flatten(0, 1)  # [S · B, W, 3H]
        previous = _previous_states(states).flatten(0, 1)  # [S · B, W, H]
        return grad_gates[0], None, grad_b.permute(1, 2, 0) @ previous.transpose(0, 1), grad_b.sum(0)


class _DirectionProducts:
    """Products of each direction's x [B, K] with its own weight, out of [W, N, K], in one launch."""

    def __init__(self, weight: Tensor, batch: int) -> None:
        joint, self.border = (weight[0], 0) if len(weight) == 1 else stacked(weight[0], weight[1])
        self.product = GpuStepProduct(joint, batch)
        self.layout = (self.border, *self.product.strides)

    def __call__(self, states: Tensor, t: int) -> None:
        """Multiply the states of each direction after its step t, out of states [S, B, W, K]."""
        first, border, offset = states[t, :, 0], None, 0
        if states.shape[2] == 2:
            second = states[len(states) - 1 - t, :, 1]
            border, offset = self.border, int(second.storage_offset() - first.storage_offset())
        self.product(first, border, offset)


def _previous_states(states: Tensor) -> Tensor:
    """Return the previous state of each state [S, B, W, H] in its direction; 0 for the first."""
    previous = torch.zeros_like(states)
    previous[1:, :, 0] = states[:-1, :, 0]
    if states.shape[2] == 2:
        previous[:-1, :, 1] = states[1:, :, 1]
    return previous
