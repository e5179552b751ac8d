"""Reads by an additive score against its definition, forward and backward, over several reads."""

import pytest
import torch
from torch import Tensor

from regard.core.kernels.cpu.additive_reads import EXP_RANGE, AdditiveReads


def states(*shape: int, scale: float = 1.0) -> Tensor:
    return (scale * torch.randn(*shape, dtype=torch.float64)).requires_grad_()


def energies(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    return (torch.tanh(query[..., :, None, :] + key[..., None, :, :]) * vector).sum(-1)


def definition(
    query: Tensor, key: Tensor, vector: Tensor, value: Tensor, padding: Tensor | None
) -> tuple[Tensor, Tensor]:
    result = energies(query, key, vector)
    weights = torch.softmax(result if padding is None else result.masked_fill(padding, -torch.inf), -1)
    return weights @ value, weights


@pytest.mark.parametrize("scale", [1.0, 3 * EXP_RANGE], ids=["near", "out of reach"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("padded", [False, True])
def test_reads_one_after_another_are_the_definition(shape: tuple[int, ...], scale: float, padded: bool) -> None:
    key, vector, query = states(*shape, 7, 5, scale=scale), states(5), states(*shape, 1, 5, scale=scale)
    value = states(*shape, 7, 5)
    padding = torch.arange(7).expand(*shape, 1, 7) >= torch.randint(1, 8, (*shape, 1, 1)) if padded else None
    reads = AdditiveReads(key, vector, value, padding)
    totals = []
    for read in (reads.read, lambda q: definition(q, key, vector, value, padding)):
        q, total = query, torch.zeros((), dtype=torch.float64)
        for t in range(4):
            context, weights = read(q)
            total = total + ((t + 1) * context).sin().sum() + weights.square().sum()
            q = torch.tanh(q) * context
        totals.append(total)
    torch.testing.assert_close(*totals)
    mine, theirs = (torch.autograd.grad(total, [key, vector, query, value]) for total in totals)
    torch.testing.assert_close(mine, theirs)


def test_energies_of_several_queries() -> None:
    key, vector, query = states(3, 7, 5), states(5), states(3, 4, 5)
    with torch.no_grad():
        torch.testing.assert_close(
            AdditiveReads(key, vector, key, None).energies(query), energies(query, key, vector).detach()
        )


def test_a_backward_pass_for_the_queries_alone_leaves_nothing_behind() -> None:
    key, vector, query, value = states(3, 7, 5), states(5), states(3, 1, 5), states(3, 7, 2)
    leaves = [key, vector, value]
    reads = AdditiveReads(*leaves, None)
    first, second = reads.read(query)[0].square().sum(), reads.read(2 * query)[0].sum()
    torch.autograd.grad(first, query, retain_graph=True)
    result = torch.autograd.grad(second, leaves, retain_graph=True)
    expected = torch.autograd.grad(definition(2 * query, *leaves, None)[0].sum(), leaves)
    torch.testing.assert_close(result, expected)
    both = torch.autograd.grad(first + second, leaves)
    whole = definition(query, *leaves, None)[0].square().sum() + definition(2 * query, *leaves, None)[0].sum()
    torch.testing.assert_close(both, torch.autograd.grad(whole, leaves))


def test_a_loss_of_the_weights_alone() -> None:
    key, vector, query, value = states(3, 7, 5), states(5), states(3, 1, 5), states(3, 7, 2)
    result = torch.autograd.grad(AdditiveReads(key, vector, value, None).read(query)[1].square().sum(), [key, query])
    expected = definition(query, key, vector, value, None)[1].square().sum()
    torch.testing.assert_close(result, torch.autograd.grad(expected, [key, query]))


def test_no_sentences() -> None:
    context, weights = AdditiveReads(states(0, 7, 5), states(5), states(0, 7, 2), None).read(states(0, 1, 5))
    assert context.shape == (0, 1, 2) and weights.shape == (0, 1, 7)
