"""One step of a cell against torch's own cells."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.models.recurrent import cells


def states(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def test_a_gru_step_is_torchs() -> None:
    x, h = states(4, 3), states(4, 5)
    weights = [states(15, 3), states(15, 5), states(15), states(15)]
    (mine,) = cells.step(linear(x, weights[0], weights[2]), linear(h, weights[1], weights[3]), (h,))
    theirs = torch.gru_cell(x, h, *weights)
    torch.testing.assert_close(mine, theirs)
    seed = torch.randn_like(mine)
    leaves = [x, h, *weights]
    torch.testing.assert_close(torch.autograd.grad(mine, leaves, seed), torch.autograd.grad(theirs, leaves, seed))


def test_an_lstm_step_is_torchs() -> None:
    x, h, c = states(4, 3), states(4, 5), states(4, 5)
    weights = [states(20, 3), states(20, 5), states(20), states(20)]
    mine = cells.step(linear(x, weights[0], weights[2]), linear(h, weights[1], weights[3]), (h, c))
    theirs = torch.lstm_cell(x, (h, c), *weights)
    torch.testing.assert_close(mine, theirs)
    seeds = [torch.randn_like(part) for part in mine]
    leaves = [x, h, c, *weights]
    torch.testing.assert_close(torch.autograd.grad(mine, leaves, seeds), torch.autograd.grad(theirs, leaves, seeds))


@pytest.mark.parametrize("leading", [(3,), (2, 2)])
def test_the_gradient_of_a_gru_step(leading: tuple[int, ...]) -> None:
    inputs = (states(*leading, 6), states(*leading, 6), states(*leading, 2))
    assert torch.autograd.gradcheck(lambda a, b, h: cells.step(a, b, (h,))[0], inputs)


def test_the_gradient_of_an_lstm_step() -> None:
    inputs = (states(3, 8), states(3, 8), states(3, 2), states(3, 2))
    assert torch.autograd.gradcheck(lambda a, b, h, c: cells.step(a, b, (h, c)), inputs)


def test_mixed_precision_gives_each_input_a_gradient_of_its_dtype() -> None:
    a, b, h = (
        states(4, 15, dtype=torch.bfloat16),
        states(4, 15, dtype=torch.bfloat16),
        states(4, 5, dtype=torch.float32),
    )
    (mine,) = cells.step(a, b, (h,))
    (wider,) = cells.step(a.float(), b.float(), (h,))
    torch.testing.assert_close(mine.float(), wider, rtol=0.02, atol=0.02)
    for leaf, result, expected in zip(
        (a, b, h), torch.autograd.grad(mine.sum(), (a, b, h)), torch.autograd.grad(wider.sum(), (a, b, h)), strict=True
    ):
        assert result.dtype == leaf.dtype
        torch.testing.assert_close(result.float(), expected.float(), rtol=0.05, atol=0.05)


def test_the_module_that_owns_the_weights() -> None:
    gru = cells.recurrence("gru", 3, 5, 2, 0.4, bidirectional=True)
    assert isinstance(gru, nn.GRU) and gru.bidirectional and gru.num_layers == 2 and gru.dropout == 0.4
    lstm = cells.recurrence("lstm", 3, 5, 1, 0.4)
    assert isinstance(lstm, nn.LSTM) and not lstm.bidirectional and lstm.dropout == 0
