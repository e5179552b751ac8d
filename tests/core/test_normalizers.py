"""Normalizers: rows with hidden places, gradients, and what Hard refuses."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from regard import Entmax15, Hard, Softmax, Sparsemax

FAMILY = [Softmax(), Softmax(0.3), Entmax15(), Sparsemax()]


def energies(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("normalizer", FAMILY)
def test_weights_are_a_distribution_over_what_is_visible(normalizer) -> None:
    hidden = torch.rand(50, 9) < 0.4
    hidden[0] = True
    weights = normalizer(energies(50, 9).masked_fill(hidden, -torch.inf))
    assert (weights >= 0).all() and (weights[hidden] == 0).all()
    torch.testing.assert_close(weights.sum(-1), (~hidden).any(-1).double())


def test_softmax_is_torchs() -> None:
    e = energies(5, 7)
    torch.testing.assert_close(Softmax()(e), e.softmax(-1))
    torch.testing.assert_close(Softmax(0.5)(e), (2 * e).softmax(-1))


@pytest.mark.parametrize("normalizer", FAMILY)
def test_gradients(normalizer) -> None:
    e = energies(6, 5)
    hidden = torch.zeros(6, 5, dtype=torch.bool)
    hidden[0] = True
    hidden[1, 2:] = True
    assert gradcheck(lambda x: normalizer(x.masked_fill(hidden, -torch.inf)), e)


def test_softmax_can_be_differentiated_twice() -> None:
    assert gradgradcheck(Softmax(0.7), energies(3, 4))


@pytest.mark.parametrize("normalizer", FAMILY)
def test_huge_energies_stay_finite(normalizer) -> None:
    weights = normalizer(torch.tensor([[1e30, -1e30, 0.0], [1e4, 1e4, -1e30]]))
    torch.testing.assert_close(weights, torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]))


@pytest.mark.parametrize("normalizer", FAMILY)
def test_rows_without_keys(normalizer) -> None:
    assert normalizer(torch.zeros(3, 0)).shape == (3, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Softmax(0), "Softmax: temperature: expected a number > 0, got 0"),
        (lambda: Hard("best"), "Hard: estimator: expected .* got 'best'"),
        (lambda: Hard("gumbel", temperature=-1), "Hard: temperature"),
        (lambda: Hard("straight_through", sample=True), "takes the argmax"),
        (lambda: Hard("reinforce", temperature=2), "'reinforce' has none"),
    ],
)
def test_bad_arguments_are_named(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
