"""One step of a GRU or LSTM, given the products W_i x + b_i and W_h h + b_h; the weights are those of torch's modules.

A recurrence of several layers is an `nn.GRU` or `nn.LSTM`, which runs all steps at once where all inputs are known.
Where the next input depends on the last output, these functions run it step by step with the weights of the module.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

Hidden = tuple[Tensor, ...]  # (h,) of a GRU, (h, c) of an LSTM; each [N, H]


def recurrence(
    cell: str, inputs: int, hidden: int, layers: int, dropout: float, bidirectional: bool = False
) -> nn.GRU | nn.LSTM:
    """Return the module that owns the weights; dropout acts between layers."""
    module = nn.GRU if cell == "gru" else nn.LSTM
    between_layers = dropout if layers > 1 else 0.0
    return module(inputs, hidden, layers, batch_first=True, dropout=between_layers, bidirectional=bidirectional)


def step(from_input: Tensor, from_state: Tensor, state: Hidden) -> Hidden:
    """Return the new state, given W_i x + b_i and W_h h + b_h, [N, 3H] or [N, 4H], and the old state. Products may be
    in bfloat16; the state stays in its own dtype, float32, so that rounding errors do not accumulate over the steps."""
    if from_input.is_cuda:
        return _fused(from_input.to(state[0].dtype), from_state.to(state[0].dtype), state)
    if len(state) == 1:
        return (cast(Tensor, _GruStep.apply(from_input, from_state, state[0])),)  # type: ignore[no-untyped-call]
    return _lstm_step(from_input.to(state[1].dtype) + from_state, state[1])


def _fused(from_input: Tensor, from_state: Tensor, state: Hidden) -> Hidden:
    """Do the same by the CUDA kernels of torch's own cells: one launch forward, one backward."""
    shape = state[0].shape
    matrices = [x.reshape(-1, x.shape[-1]) for x in (from_input, from_state, state[-1])]
    if len(state) == 1:
        return (torch.ops.aten._thnn_fused_gru_cell(*matrices)[0].view(shape),)
    hidden, cell, _ = torch.ops.aten._thnn_fused_lstm_cell(*matrices)
    return hidden.view(shape), cell.view(shape)


def _lstm_step(gates: Tensor, cell: Tensor) -> Hidden:
    """i, f, o = σ(…), g = tanh(…);      c' = f ⊙ c + i ⊙ g,      h' = o ⊙ tanh(c')"""
    input_gate, forget_gate, candidate, output_gate = gates.chunk(4, -1)
    cell = torch.sigmoid(forget_gate) * cell + torch.sigmoid(input_gate) * torch.tanh(candidate)
    return torch.sigmoid(output_gate) * torch.tanh(cell), cell


class _GruStep(torch.autograd.Function):
    """r, z = σ(a_r + b_r), σ(a_z + b_z);      n = tanh(a_n + r ⊙ b_n);      h' = n + z ⊙ (h − n)

    The gradient is written out, because a step is a dozen operations on small tensors and autograd would run three
    times as many.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, h: Tensor) -> Tensor:
        hidden = h.shape[-1]
        ctx.dtypes = a.dtype, b.dtype, h.dtype
        a, b = a.to(h.dtype), b.to(h.dtype)
        gates = torch.sigmoid(a[..., : 2 * hidden] + b[..., : 2 * hidden])  # [N, 2H]
        reset, update = gates.chunk(2, -1)
        b_n = b[..., 2 * hidden :]
        n = torch.addcmul(a[..., 2 * hidden :], reset, b_n).tanh_()
        ctx.save_for_backward(gates, n, b_n, h)
        return torch.lerp(n, h, update)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]
        gates, n, b_n, h = ctx.saved_tensors
        hidden = h.shape[-1]
        reset, update = gates.chunk(2, -1)
        grad_h = gradient * update  # without the part that comes through b, which autograd adds
        grad_a = gates.new_empty(*gates.shape[:-1], 3 * hidden)
        grad_gates, grad_n = grad_a[..., : 2 * hidden], grad_a[..., 2 * hidden :]  # grad_n: of a_n + r ⊙ b_n
        torch.mul(gradient - grad_h, 1 - n * n, out=grad_n)
        torch.mul(grad_n, b_n, out=grad_gates[..., :hidden])
        torch.mul(gradient, h - n, out=grad_gates[..., hidden:])
        grad_gates.mul_(gates).mul_(1 - gates)
        grad_b = grad_a.clone()
        grad_b[..., 2 * hidden :].mul_(reset)
        return tuple(x.to(d) for x, d in zip((grad_a, grad_b, grad_h), ctx.dtypes, strict=True))  # type: ignore[return-value]
