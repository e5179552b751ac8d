"""All steps of a recurrent decoder as one function, for a GPU: a step waits for six launches, and back for six.

    a_t = W_y y_{t−1} + W_o o_{t−1},   b_t = W_h s_{t−1} + b        s_t = GRU(a_t, b_t, s_{t−1})
    c_t = attention(W_q s_t, keys, values)                          o_t = tanh(W_c [s_t; c_t] + b_c)

Left to autograd, each step leaves dozens of small operations behind. Here a step writes its state and context side by
side into what W_c multiplies; what belongs to weights is one large product over all steps at the end; and what a state
brings to the next one, W_h s, is computed beside attention, on a stream of its own.
B sentences, T steps, S source positions; H, O, A, E features of states, outputs, the score and the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


class _Beside:
    """What need not be waited for at once: on a GPU it goes to a second stream."""

    def __init__(self, device: torch.device) -> None:
        self._second = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """After all that was asked for before."""
        if self._second is None:
            yield
            return
        self._second.wait_stream(torch.cuda.current_stream(self._second.device))
        with torch.cuda.stream(self._second):
            yield

    def wait(self) -> None:
        if self._second is not None:
            torch.cuda.current_stream(self._second.device).wait_stream(self._second)


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
        by_input = torch.empty_like(gates[0])
        by_state = torch.addmm(weights.state_bias, first, weights.state.t())
        beside = _Beside(gates.device)
        state = first
        for t in range(steps):
            if t:
                torch.addmm(gates[t], outputs[t - 1], weights.feed.t(), out=by_input)
            beside.wait()
            new = joined[t, :, :hidden]
            device.gru_forward[(-(-hidden // BLOCK), batch)](
                by_input if t else gates[0], by_state, state, new, kept[t],
                hidden, state.stride(0), new.stride(0), BLOCK=BLOCK,
            )  # fmt: skip
            if t + 1 < steps:
                with beside():
                    torch.addmm(weights.state_bias, new, weights.state.t(), out=by_state)
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
        asked, through = torch.empty_like(first), torch.empty_like(first)
        carried = torch.zeros_like(first)  # ∂s_t from the step behind
        fed = torch.empty_like(outputs[0])  # ∂o_t from the step behind; nothing at first
        beside = _Beside(key.device)
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
            torch.mm(by_query[t], weights.query, out=asked)
            beside.wait()
            old, shown = first if t == 0 else joined[t - 1, :, :hidden], by_joined[t, :, :hidden]
            device.gru_backward[(-(-hidden // BLOCK), batch)](
                asked, shown, carried, kept[t], old, by_input[t], by_state[t], through,
                hidden, shown.stride(0), old.stride(0), BLOCK=BLOCK,
            )  # fmt: skip
            with beside():
                torch.addmm(through, by_state[t], weights.state, out=carried)
            if t:
                torch.mm(by_input[t], weights.feed, out=fed)
        beside.wait()
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
