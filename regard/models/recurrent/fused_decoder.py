"""All steps of a recurrent decoder as one autograd function, for a GPU: six launches per step, six in its gradient.

    a_t = W_y y_{t−1} + W_o o_{t−1},   b_t = W_h s_{t−1} + b        s_t = GRU(a_t, b_t, s_{t−1})
    c_t = attention(W_q s_t, keys, values)                          o_t = tanh(W_c [s_t; c_t] + b_c)

With autograd alone, each step would be dozens of small operations. Here W_q s and W_h s are one product; a step writes
its state and context side by side into the buffer that W_c multiplies; and the gradients of weights and keys are
computed once, over all steps, at the end.
B sentences, T steps, S source positions; H, O, A, E features of states, outputs, the score and the source.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.core.kernels.gpu.blocks import next_power_of_two
from regard.models.recurrent.step_product import GpuStepProduct, stacked
from regard.runtime.device_guard import device_guard

BLOCK = 128  # features per program
TILE = 16384  # keys × features that a program holds at once


class Weights(NamedTuple):
    """The weights that all steps share."""

    feed: Tensor  # W_o [3H, O]
    state: Tensor  # W_h [3H, H]
    state_bias: Tensor
    query: Tensor  # W_q [A, H]
    vector: Tensor  # v [A]
    combine: Tensor  # W_c [O, H + E]
    combine_bias: Tensor


def decode(
    gates: Tensor, hidden: Tensor, key: Tensor, value: Tensor, lengths: Tensor, weights: Weights
) -> tuple[Tensor, Tensor]:
    """Return the outputs o [T, B, O] and the attention weights [T, B, S].

    `gates` are the products with the embeddings [T, B, 3H], `hidden` is s_0 [B, H], `key` k' [B, S, A], `value`
    [B, S, E], of `lengths` [B].
    """
    with device_guard(gates.device):
        decoded: tuple[Tensor, Tensor] = _FusedDecoder.apply(gates, hidden, key, value, lengths, *weights)  # type: ignore[no-untyped-call]
    return decoded


def _tile(keys: int, *features: int) -> dict[str, int]:
    """Return the launch options of an attention kernel: how many keys and features a program holds at once."""
    size = next_power_of_two(keys)
    return {"KEYS": size, "BLOCK": min(next_power_of_two(max(features)), max(16, TILE // size)), "num_warps": 8}


def _weight_gradients(
    first: Tensor, joined: Tensor, outputs: Tensor, grad_gates: Tensor, grad_query: Tensor, grad_combined: Tensor,
    grad_vector: Tensor,
) -> Weights:  # fmt: skip
    """Return the gradients of all weights, each by one product over all steps [T, B, …]."""

    def product(gradient: Tensor, inputs: Tensor) -> Tensor:
        return gradient.flatten(0, 1).t() @ inputs.flatten(0, 1)

    (grad_a, grad_b), states = grad_gates, joined[:, :, : first.shape[1]]
    return Weights(
        feed=product(grad_a[1:], outputs[:-1]),
        state=product(grad_b, torch.cat([first[None], states[:-1]])),  # s_{t−1}
        state_bias=grad_b.sum((0, 1)),
        query=product(grad_query, states),
        vector=grad_vector,
        combine=product(grad_combined, joined),
        combine_bias=grad_combined.sum((0, 1)),
    )


def _key_gradients(queries: Tensor, key: Tensor, vector: Tensor, grad_energies: Tensor) -> tuple[Tensor, Tensor]:
    """Return ∂k' [B, S, A] and ∂v [A], given q [T, B, A] and the gradients [T, B, S] of the energies of all steps."""
    from regard.models.recurrent import step_device as device

    (batch, keys, score), steps = key.shape, len(queries)
    grad_key, grad_vectors = torch.empty_like(key), key.new_empty(batch, score)
    block = max(16, min(64, TILE // 2 // next_power_of_two(keys)))
    device.keys_backward[(batch, -(-score // block))](
        queries, key, vector, grad_energies, grad_key, grad_vectors, steps, batch, keys, score,
        KEYS=next_power_of_two(keys), BLOCK=block,
    )  # fmt: skip
    return grad_key, grad_vectors.sum(0)


class _FusedDecoder(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, first: Tensor, key: Tensor, value: Tensor, lengths: Tensor, *weight_tensors: Tensor
    ) -> tuple[Tensor, Tensor]:
        from regard.models.recurrent import step_device as device

        weights = Weights(*weight_tensors)
        gates, first, key, value = (x.contiguous() for x in (gates, first, key, value))
        steps, (batch, hidden), (_, keys, features), score = len(gates), first.shape, value.shape, key.shape[2]
        feed, combine = GpuStepProduct(weights.feed, batch), GpuStepProduct(weights.combine, batch)
        state_product = GpuStepProduct(torch.cat([weights.query, weights.state]), batch)  # [W_q; W_h] s
        state_parts = state_product.parts[:, :, score:]
        saved_gates = gates.new_empty(steps, batch, 4 * hidden)
        joined = gates.new_empty(steps, batch, hidden + features)  # [s_t; c_t]
        queries = gates.new_empty(steps, batch, score)
        outputs = gates.new_empty(steps, batch, combine.columns)
        attention = gates.new_empty(steps, batch, keys)
        state_product(first)
        state, tile = first, _tile(keys, score, features)
        for t in range(steps):
            if t:
                feed(outputs[t - 1])
            new, context = joined[t, :, :hidden], joined[t, :, hidden:]
            device.gru_forward[(-(-hidden // BLOCK), batch)](
                gates[t], feed.parts, state_parts, weights.state_bias, state, new, saved_gates[t],
                hidden, feed.strides[1], *state_product.strides, state.stride(0), new.stride(0),
                FEED_PARTS=feed.count if t else 0, STATE_PARTS=state_product.count, BLOCK=BLOCK,
            )  # fmt: skip
            state_product(new)
            device.attend_forward[(batch,)](
                state_product.parts, queries[t], key, weights.vector, value, lengths, attention[t], context,
                keys, score, features, *state_product.strides, context.stride(0),
                QUERY_PARTS=state_product.count, **tile,
            )  # fmt: skip
            combine(joined[t])
            device.output_forward[(-(-outputs[t].numel() // 512),)](
                combine.parts, weights.combine_bias, outputs[t], outputs[t].numel(), combine.columns,
                PARTS=combine.count, BLOCK=512,
            )  # fmt: skip
            state = new
        ctx.save_for_backward(first, key, value, saved_gates, joined, queries, outputs, attention, *weight_tensors)
        return outputs, attention

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor, grad_attention: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        from regard.models.recurrent import step_device as device

        refuse_second_order()
        first, key, value, saved_gates, joined, queries, outputs, attention, *weight_tensors = ctx.saved_tensors
        weights = Weights(*weight_tensors)
        steps, (batch, hidden), (_, keys, features), score = len(saved_gates), first.shape, value.shape, key.shape[2]
        grad_output, grad_attention = grad_output.contiguous(), grad_attention.contiguous()
        combine_back, query_back = (GpuStepProduct(weight.t(), batch) for weight in (weights.combine, weights.query))
        # ∂o through W_o and ∂s through W_h of the previous step are one product.
        feed_and_state, border = stacked(weights.feed.t(), weights.state.t())
        gates_back = GpuStepProduct(feed_and_state, batch)
        carried = gates_back.parts[:, :, border:]
        grad_gates = saved_gates.new_empty(2, steps, batch, 3 * hidden)  # ∂a, ∂b
        grad_combined, grad_query, grad_energies = (torch.empty_like(x) for x in (outputs, queries, attention))
        grad_context, grad_state = value.new_empty(steps, batch, features), torch.empty_like(first)
        tile = _tile(keys, score, features)
        for t in reversed(range(steps)):
            size, has_next = outputs[t].numel(), t < steps - 1
            device.output_backward[(-(-size // 512),)](
                grad_output[t], gates_back.parts, outputs[t], grad_combined[t], size, outputs.shape[2],
                *gates_back.strides, FEED_PARTS=gates_back.count if has_next else 0, BLOCK=512,
            )  # fmt: skip
            combine_back(grad_combined[t])
            device.attend_backward[(batch,)](
                queries[t], key, weights.vector, value, attention[t], combine_back.parts[:, :, hidden:],
                grad_attention[t], grad_context[t], grad_query[t], grad_energies[t],
                keys, score, features, *combine_back.strides, JOINED_PARTS=combine_back.count, **tile,
            )  # fmt: skip
            query_back(grad_query[t])
            old = first if t == 0 else joined[t - 1, :, :hidden]
            device.gru_backward[(-(-hidden // BLOCK), batch)](
                query_back.parts, combine_back.parts, carried, grad_state, saved_gates[t], old, grad_gates[0, t],
                hidden, grad_gates.stride(0), query_back.strides[1], *combine_back.strides, *gates_back.strides,
                old.stride(0),
                QUERY_PARTS=query_back.count, JOINED_PARTS=combine_back.count,
                CARRIED_PARTS=gates_back.count if has_next else 0, BLOCK=BLOCK,
            )  # fmt: skip
            gates_back(grad_gates[0, t], border, grad_gates.stride(0))
        grad_key, grad_vector = _key_gradients(queries, key, weights.vector, grad_energies)
        grad_weights = _weight_gradients(first, joined, outputs, grad_gates, grad_query, grad_combined, grad_vector)
        grad_value = attention.permute(1, 2, 0) @ grad_context.transpose(0, 1)  # Σ_t w_t ⊗ ∂c_t
        return grad_gates[0], grad_state + carried.sum(0), grad_key, grad_value, None, *grad_weights
