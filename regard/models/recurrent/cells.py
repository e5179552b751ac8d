"""One step of a GRU or LSTM, given what its inputs and its state bring to the gates; weights are torch's own.

A recurrence of several layers is an `nn.GRU` or `nn.LSTM`, which runs all steps at once where all inputs are known.
Where the next input depends on the last output, these functions take its weights through it step by step.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

Hidden = tuple[Tensor, ...]
"""(h,) of a GRU, (h, c) of an LSTM; each [N, H]"""


def recurrence(
    cell: str, inputs: int, hidden: int, layers: int, dropout: float, bidirectional: bool = False
) -> nn.GRU | nn.LSTM:
    """The module that owns the weights; dropout acts between layers."""
    kind = nn.GRU if cell == "gru" else nn.LSTM
    between = dropout if layers > 1 else 0.0
    return kind(inputs, hidden, layers, batch_first=True, dropout=between, bidirectional=bidirectional)


def step(from_input: Tensor, from_state: Tensor, state: Hidden) -> Hidden:
    """W_i x + b_i and W_h h + b_h, [N, 3H] or [N, 4H], and the old state → the new state.

    The products may come in bfloat16; the state stays in its own dtype, float32, so that nothing is lost from step to
    step.
    """
    if from_input.is_cuda:
        return _fused(from_input.to(state[0].dtype), from_state.to(state[0].dtype), state)
    if len(state) == 1:
        return (cast(Tensor, _GruStep.apply(from_input, from_state, state[0])),)  # type: ignore[no-untyped-call]
    return _lstm_step(from_input.to(state[1].dtype) + from_state, state[1])


def _fused(from_input: Tensor, from_state: Tensor, state: Hidden) -> Hidden:
    """The kernels behind torch's own cells: one launch forward, one backward."""
    shape = state[0].shape
    flat = [x.reshape(-1, x.shape[-1]) for x in (from_input, from_state, state[-1])]
    if len(state) == 1:
        return (torch.ops.aten._thnn_fused_gru_cell(*flat)[0].view(shape),)
    hidden, memory, _ = torch.ops.aten._thnn_fused_lstm_cell(*flat)
    return hidden.view(shape), memory.view(shape)


def _lstm_step(gates: Tensor, memory: Tensor) -> Hidden:
    """i, f, o = σ(…), g = tanh(…);      c' = f ⊙ c + i ⊙ g,      h' = o ⊙ tanh(c')"""
    let_in, keep, new, show = gates.chunk(4, -1)
    memory = torch.sigmoid(keep) * memory + torch.sigmoid(let_in) * torch.tanh(new)
    return torch.sigmoid(show) * torch.tanh(memory), memory


class _GruStep(torch.autograd.Function):
    """r, z = σ(a_r + b_r), σ(a_z + b_z);      n = tanh(a_n + r ⊙ b_n);      h' = n + z ⊙ (h − n)

    Written out with its gradient: a step is a dozen operations on small tensors, and autograd would make it three times
    as many.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, h: Tensor) -> Tensor:
        hidden = h.shape[-1]
        ctx.dtypes = a.dtype, b.dtype, h.dtype
        a, b = a.to(h.dtype), b.to(h.dtype)
        gates = torch.sigmoid(a[..., : 2 * hidden] + b[..., : 2 * hidden])  # [N, 2H]
        reset, keep = gates.chunk(2, -1)
        state_part = b[..., 2 * hidden :]
        new = torch.addcmul(a[..., 2 * hidden :], reset, state_part).tanh_()
        ctx.save_for_backward(gates, new, state_part, h)
        return torch.lerp(new, h, keep)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]
        gates, new, state_part, h = ctx.saved_tensors
        hidden = h.shape[-1]
        reset, keep = gates.chunk(2, -1)
        through = gradient * keep
        to_a = gates.new_empty(*gates.shape[:-1], 3 * hidden)
        by_gates, by_new = to_a[..., : 2 * hidden], to_a[..., 2 * hidden :]  # by_new: at a_n + r ⊙ b_n
        torch.mul(gradient - through, 1 - new * new, out=by_new)
        torch.mul(by_new, state_part, out=by_gates[..., :hidden])
        torch.mul(gradient, h - new, out=by_gates[..., hidden:])
        by_gates.mul_(gates).mul_(1 - gates)
        to_b = to_a.clone()
        to_b[..., 2 * hidden :].mul_(reset)
        return tuple(x.to(d) for x, d in zip((to_a, to_b, through), ctx.dtypes, strict=True))  # type: ignore[return-value]
