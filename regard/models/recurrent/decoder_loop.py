"""All steps of a recurrent decoder as one function, for a GPU: six launches a step, and six back.

    a_t = W_y y_{t−1} + W_o o_{t−1},   b_t = W_h s_{t−1} + b        s_t = GRU(a_t, b_t, s_{t−1})
    c_t = attention(W_q s_t, keys, values)                          o_t = tanh(W_c [s_t; c_t] + b_c)

Left to autograd, each step leaves dozens of small operations behind. Here W_q s and W_h s are one product; a step
writes its state and context side by side into what W_c multiplies; and what belongs to weights and keys is computed
once, over all steps, at the end.
B sentences, T steps, S source positions; H, O, A, E features of states, outputs, the score and the source.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.core.kernels.gpu.blocks import power
from regard.models.recurrent.step_product import Product, beside
from regard.runtime.device_guard import device_guard

BLOCK = 128
"""features that a program takes at once"""
TILE = 16384
"""keys by features that a program holds at once"""


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
    with device_guard(gates.device):
        found: tuple[Tensor, Tensor] = _Loop.apply(gates, hidden, key, value, lengths, *weights)  # type: ignore[no-untyped-call]
    return found


def _tile(keys: int, *features: int) -> dict[str, int]:
    """How much of keys and features a program of attention holds."""
    size = power(keys)
    return {"KEYS": size, "BLOCK": min(power(max(features)), max(16, TILE // size)), "num_warps": 8}


def _over_steps(gradient: Tensor, given: Tensor) -> Tensor:
    """∂W of what W gave: [T, B, N], [T, B, K] → [N, K]"""
    return gradient.flatten(0, 1).t() @ given.flatten(0, 1)


class _Loop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, first: Tensor, key: Tensor, value: Tensor, lengths: Tensor, *given: Tensor
    ) -> tuple[Tensor, Tensor]:
        from regard.models.recurrent import step_device as device

        weights = Weights(*given)
        gates, first, key, value = (x.contiguous() for x in (gates, first, key, value))
        steps, (batch, hidden), (_, keys, features), score = len(gates), first.shape, value.shape, key.shape[2]
        feed, combine = Product(weights.feed, batch), Product(weights.combine, batch)
        of_state = Product(torch.cat([weights.query, weights.state]), batch)  # [W_q; W_h] s
        by_state = of_state.parts[:, :, score:]
        kept = gates.new_empty(steps, batch, 4 * hidden)
        joined = gates.new_empty(steps, batch, hidden + features)  # [s_t; c_t]
        queries = gates.new_empty(steps, batch, score)
        outputs = gates.new_empty(steps, batch, combine.columns)
        seen = gates.new_empty(steps, batch, keys)
        of_state(first)
        state, tile = first, _tile(keys, score, features)
        for t in range(steps):
            if t:
                feed(outputs[t - 1])
            new, context = joined[t, :, :hidden], joined[t, :, hidden:]
            device.gru_forward[(-(-hidden // BLOCK), batch)](
                gates[t], feed.parts, by_state, weights.state_bias, state, new, kept[t],
                hidden, feed.apart, of_state.columns, of_state.apart, state.stride(0), new.stride(0),
                FED=feed.count if t else 0, STATE=of_state.count, BLOCK=BLOCK,
            )  # fmt: skip
            of_state(new)
            device.attend_forward[(batch,)](
                of_state.parts, queries[t], key, weights.vector, value, lengths, seen[t], context,
                keys, score, features, of_state.columns, of_state.apart, context.stride(0),
                ASKED=of_state.count, **tile,
            )  # fmt: skip
            combine(joined[t])
            device.output_forward[(-(-outputs[t].numel() // 512),)](
                combine.parts, weights.combine_bias, outputs[t], outputs[t].numel(), combine.columns,
                PARTS=combine.count, BLOCK=512,
            )  # fmt: skip
            state = new
        ctx.save_for_backward(first, key, value, kept, joined, queries, outputs, seen, *given)
        return outputs, seen

    @staticmethod
    def backward(ctx: Any, by_output: Tensor, by_seen: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        from regard.models.recurrent import step_device as device

        refuse_second_order()
        first, key, value, kept, joined, queries, outputs, seen, *given = ctx.saved_tensors
        weights = Weights(*given)
        steps, (batch, hidden), (_, keys, features), score = len(kept), first.shape, value.shape, key.shape[2]
        columns = outputs.shape[2]
        by_output, by_seen = by_output.contiguous(), by_seen.contiguous()
        through_combine, through_query = Product(weights.combine.t(), batch), Product(weights.query.t(), batch)
        # ∂o by W_o and ∂s by W_h of the step before are one product.
        both, border = beside(weights.feed.t(), weights.state.t())
        through_gates = Product(both, batch)
        carried = through_gates.parts[:, :, border:]
        by_gates = kept.new_empty(2, steps, batch, 3 * hidden)  # ∂a, ∂b
        by_combined, by_query, slopes = (torch.empty_like(x) for x in (outputs, queries, seen))
        by_context = value.new_empty(steps, batch, features)
        through = torch.empty_like(first)
        tile = _tile(keys, score, features)
        for t in reversed(range(steps)):
            size, later = outputs[t].numel(), t < steps - 1
            device.output_backward[(-(-size // 512),)](
                by_output[t], through_gates.parts, outputs[t], by_combined[t],
                size, columns, through_gates.columns, through_gates.apart,
                FED=through_gates.count if later else 0, BLOCK=512,
            )  # fmt: skip
            through_combine(by_combined[t])
            device.attend_backward[(batch,)](
                queries[t], key, weights.vector, value, seen[t], through_combine.parts[:, :, hidden:], by_seen[t],
                by_context[t], by_query[t], slopes[t],
                keys, score, features, through_combine.columns, through_combine.apart,
                JOINED=through_combine.count, **tile,
            )  # fmt: skip
            through_query(by_query[t])
            old = first if t == 0 else joined[t - 1, :, :hidden]
            device.gru_backward[(-(-hidden // BLOCK), batch)](
                through_query.parts, through_combine.parts, carried, through, kept[t], old, by_gates[0, t],
                hidden, by_gates.stride(0), through_query.apart, through_combine.columns, through_combine.apart,
                through_gates.columns, through_gates.apart, old.stride(0),
                ASKED=through_query.count, JOINED=through_combine.count,
                CARRIED=through_gates.count if later else 0, BLOCK=BLOCK,
            )  # fmt: skip
            through_gates(by_gates[0, t], border, by_gates.stride(0))
        by_key, by_vector = torch.empty_like(key), key.new_empty(batch, score)
        block = max(16, min(64, TILE // 2 // power(keys)))
        device.keys_backward[(batch, -(-score // block))](
            queries, key, weights.vector, slopes, by_key, by_vector, steps, batch, keys, score,
            KEYS=power(keys), BLOCK=block,
        )  # fmt: skip
        before = torch.cat([first[None], joined[:-1, :, :hidden]])  # s_{t−1}
        by_weights = (
            _over_steps(by_gates[0, 1:], outputs[:-1]),
            _over_steps(by_gates[1], before),
            by_gates[1].sum((0, 1)),
            _over_steps(by_query, joined[:, :, :hidden]),
            by_vector.sum(0),
            _over_steps(by_combined, joined),
            by_combined.sum((0, 1)),
        )
        by_value = seen.permute(1, 2, 0) @ by_context.transpose(0, 1)  # Σ_t w_t ⊗ ∂c_t
        return by_gates[0], through + carried.sum(0), by_key, by_value, None, *by_weights
