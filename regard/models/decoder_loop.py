"""All steps of a recurrent decoder as one function, for a GPU: a step is seven launches, and back eight.

    a_t = W_y y_{t−1} + W_o o_{t−1},   b_t = W_h s_{t−1} + b        s_t = GRU(a_t, b_t, s_{t−1})
    c_t = attention(W_q s_t, keys, values)                          o_t = tanh(W_c [s_t; c_t] + b_c)

Left to autograd, each step leaves dozens of small operations behind. Here a step writes its state and context side by
side into what W_c multiplies, and what belongs to weights is one large product over all steps at the end.
B sentences, T steps, S source positions; H, O, A, E features of states, outputs, the score and the source.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.core.kernels.fused.blocks import power

BLOCK = 128
"""features that a program takes at once"""


class Weights(NamedTuple):
    """What the steps share."""

    feed: Tensor
    """W_o [3H, O]"""
    state: Tensor
    """W_h [3H, H]"""
    state_bias: Tensor
    query: Tensor
    """W_q [A, H]"""
    vector: Tensor
    """v [A]"""
    combine: Tensor
    """W_c [O, H + E]"""
    combine_bias: Tensor


def decode(
    gates: Tensor, hidden: Tensor, key: Tensor, value: Tensor, lengths: Tensor, weights: Weights
) -> tuple[Tensor, Tensor]:
    """What the words bring [T, B, 3H], s_0 [B, H], k' [B, S, A], values [B, S, E] of `lengths` [B] → (o [T, B, O],
    weights [T, B, S])"""
    found: tuple[Tensor, Tensor] = _Loop.apply(gates, hidden, key, value, lengths, *weights)  # type: ignore[no-untyped-call]
    return found


class _Loop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, first: Tensor, key: Tensor, value: Tensor, lengths: Tensor, *given: Tensor
    ) -> tuple[Tensor, Tensor]:
        from regard.core.kernels.fused import step_device as device

        weights = Weights(*given)
        gates, first, key, value = (x.contiguous() for x in (gates, first, key, value))
        steps, (batch, hidden), (_, keys, features) = len(gates), first.shape, value.shape
        kept = gates.new_empty(steps, batch, 4 * hidden)
        joined = gates.new_empty(steps, batch, hidden + features)  # [s_t; c_t]
        queries = gates.new_empty(steps, batch, key.shape[2])
        outputs = gates.new_empty(steps, batch, weights.combine.shape[0])
        seen = gates.new_empty(steps, batch, keys)
        state = first
        for t in range(steps):
            by_input = gates[t] if t == 0 else torch.addmm(gates[t], outputs[t - 1], weights.feed.t())
            by_state = torch.addmm(weights.state_bias, state, weights.state.t())
            new = joined[t, :, :hidden]
            device.gru_forward[(-(-hidden // BLOCK), batch)](
                by_input, by_state, state, new, kept[t], hidden, state.stride(0), new.stride(0), BLOCK=BLOCK
            )
            torch.mm(new, weights.query.t(), out=queries[t])
            context = joined[t, :, hidden:]
            device.attend_forward[(batch,)](
                queries[t], key, weights.vector, value, lengths, seen[t], context,
                keys, key.shape[2], features, context.stride(0), KEYS=power(keys), BLOCK=32,
            )  # fmt: skip
            torch.addmm(weights.combine_bias, joined[t], weights.combine.t(), out=outputs[t]).tanh_()
            state = new
        ctx.save_for_backward(first, key, value, kept, joined, queries, outputs, seen, *given)
        return outputs, seen

    @staticmethod
    def backward(ctx: Any, by_output: Tensor, by_seen: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        from regard.core.kernels.fused import step_device as device

        first, key, value, kept, joined, queries, outputs, seen, *given = ctx.saved_tensors
        weights = Weights(*given)
        steps, (batch, hidden), (_, keys, features) = len(kept), first.shape, value.shape
        by_output, by_seen = by_output.contiguous(), by_seen.contiguous()
        by_combined, by_joined = torch.empty_like(outputs), torch.empty_like(joined)
        by_input, by_state = (kept.new_empty(steps, batch, 3 * hidden) for _ in range(2))
        by_query, by_key = torch.empty_like(queries), torch.zeros_like(key)
        by_vector = key.new_zeros(batch, key.shape[2])
        carried = first.new_zeros(batch, hidden)  # ∂s_t from the step behind
        fed = outputs[0]  # ∂o_t from the step behind; nothing at first
        for t in reversed(range(steps)):
            size = outputs[t].numel()
            device.output_backward[(-(-size // 1024),)](
                by_output[t], fed, outputs[t], by_combined[t], size, FED=t < steps - 1, BLOCK=1024
            )
            torch.mm(by_combined[t], weights.combine, out=by_joined[t])
            by_context = by_joined[t, :, hidden:]
            device.attend_backward[(batch,)](
                queries[t], key, weights.vector, value, seen[t], by_context, by_seen[t],
                by_query[t], by_key, by_vector, keys, key.shape[2], features, by_context.stride(0),
                GIVEN=True, KEYS=power(keys), BLOCK=32,
            )  # fmt: skip
            by_new = torch.addmm(by_joined[t, :, :hidden], by_query[t], weights.query).add_(carried)
            old = first if t == 0 else joined[t - 1, :, :hidden]
            through = torch.empty_like(first)
            device.gru_backward[(-(-hidden // BLOCK), batch)](
                by_new, kept[t], old, by_input[t], by_state[t], through, hidden, old.stride(0), BLOCK=BLOCK
            )
            carried = torch.addmm(through, by_state[t], weights.state)
            fed = torch.mm(by_input[t], weights.feed)
        before = torch.cat([first[None], joined[:-1, :, :hidden]])  # s_{t−1}
        by_weights = (
            by_input[1:].flatten(0, 1).t() @ outputs[:-1].flatten(0, 1),
            by_state.flatten(0, 1).t() @ before.flatten(0, 1),
            by_state.sum((0, 1)),
            by_query.flatten(0, 1).t() @ joined[:, :, :hidden].flatten(0, 1),
            by_vector.sum(0),
            by_combined.flatten(0, 1).t() @ joined.flatten(0, 1),
            by_combined.sum((0, 1)),
        )
        by_value = seen.permute(1, 2, 0) @ by_joined[:, :, hidden:].transpose(0, 1)  # Σ_t w_t ⊗ ∂c_t
        return by_input, carried, by_key, by_value, None, *by_weights
