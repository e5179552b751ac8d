"""The decoder's steps as one function, in Triton's interpreter, against the same steps left to autograd."""

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", minversion="3.4")  # older interpreters do not know the numpy of today
from regard.models.recurrent.fused_decoder import Weights, decode

STEPS, BATCH, KEYS, HIDDEN, OUTPUT, SCORE, STATES = 4, 3, 5, 12, 10, 20, 14
LENGTHS = torch.tensor([5, 2, 3])


def by_autograd(
    gates: Tensor, hidden: Tensor, key: Tensor, value: Tensor, lengths: Tensor, weights: Weights
) -> tuple[Tensor, Tensor]:
    """torch's own GRU cell, softmax and products."""
    cell = torch.nn.GRUCell(gates.shape[2], hidden.shape[1], dtype=gates.dtype)
    del cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
    cell.weight_ih, cell.bias_ih = torch.eye(gates.shape[2], dtype=gates.dtype), gates.new_zeros(gates.shape[2])
    cell.weight_hh, cell.bias_hh = weights.state, weights.state_bias
    output, outputs, seen = gates.new_zeros(len(hidden), len(weights.combine)), [], []
    for now in gates:
        hidden = cell(now + output @ weights.feed.T, hidden)
        pairs = torch.tanh((hidden @ weights.query.T)[:, None] + key)
        energies = (pairs @ weights.vector).masked_fill(torch.arange(key.shape[1]) >= lengths[:, None], -torch.inf)
        seen.append(torch.softmax(energies, -1))
        context = (seen[-1][:, None] @ value)[:, 0]
        output = torch.tanh(torch.cat([hidden, context], -1) @ weights.combine.T + weights.combine_bias)
        outputs.append(output)
    return torch.stack(outputs), torch.stack(seen)


def test_as_by_autograd() -> None:
    shapes = [(STEPS, BATCH, 3 * HIDDEN), (BATCH, HIDDEN), (BATCH, KEYS, SCORE), (BATCH, KEYS, STATES)]
    wider = HIDDEN + STATES
    shapes += [(3 * HIDDEN, OUTPUT), (3 * HIDDEN, HIDDEN), (3 * HIDDEN,), (SCORE, HIDDEN), (SCORE,), (OUTPUT, wider)]
    inputs = [(0.4 * torch.randn(shape)).requires_grad_() for shape in [*shapes, (OUTPUT,)]]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    outputs, seen = decode(*inputs[:4], LENGTHS, Weights(*inputs[4:]))
    wanted, shown = by_autograd(*exact[:4], LENGTHS, Weights(*exact[4:]))
    torch.testing.assert_close(outputs, wanted.float(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(seen, shown.float(), atol=1e-5, rtol=1e-5)
    given = [torch.randn(x.transpose(0, 1).shape).transpose(0, 1) for x in (outputs, seen)]  # as sentences first
    result = torch.autograd.grad((outputs * given[0]).sum() + (seen * given[1]).sum(), inputs)
    right = torch.autograd.grad((wanted * given[0]).sum() + (shown * given[1]).sum(), exact)
    for mine, theirs in zip(result, right, strict=True):
        torch.testing.assert_close(mine, theirs.float(), atol=2e-5, rtol=1e-4)
