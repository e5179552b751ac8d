"""Sparsemax and Entmax15 give the weights and gradients of the `entmax` package."""

import pytest
import torch

import regard

entmax = pytest.importorskip("entmax")

PAIRS = pytest.mark.parametrize(
    ("normalizer", "theirs"),
    [(regard.Sparsemax(), entmax.sparsemax), (regard.Entmax15(), entmax.entmax15)],
    ids=["sparsemax", "entmax15"],
)
LENGTHS = pytest.mark.parametrize("length", [1, 2, 7, 50])


def random(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def row_by_row(theirs, energies):
    """Their weights for what is visible of each row, and 0 elsewhere: they do not know −inf."""
    rows = []
    for row in energies.reshape(-1, energies.shape[-1]):
        visible = row > -torch.inf
        weights = torch.zeros_like(row)
        rows.append(weights.masked_scatter(visible, theirs(row[visible], -1)) if visible.any() else weights)
    return torch.stack(rows).view(energies.shape)


def weights_and_gradient(normalize, energies, upstream):
    energies = energies.detach().requires_grad_()
    weights = normalize(energies)
    (gradient,) = torch.autograd.grad(weights, energies, upstream)
    return weights.detach(), gradient


def assert_same(normalizer, theirs, energies):
    upstream = random(*energies.shape, seed=99)
    weights, gradient = weights_and_gradient(normalizer, energies, upstream)
    expected_weights, expected_gradient = weights_and_gradient(lambda x: row_by_row(theirs, x), energies, upstream)
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=1e-10)
    assert torch.equal(weights == 0, expected_weights == 0)  # the same support


@PAIRS
@LENGTHS
@pytest.mark.parametrize("spread", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("offset", [0.0, -1000.0])
def test_random_rows(normalizer, theirs, length, spread, offset):
    assert_same(normalizer, theirs, spread * random(4, 6, length) + offset)


@PAIRS
@LENGTHS
@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_hidden_places(normalizer, theirs, length, spread):
    energies = spread * random(30, length)
    hidden = random(30, length, seed=1) > 0
    assert_same(normalizer, theirs, energies.masked_fill(hidden, -torch.inf))


@PAIRS
@pytest.mark.parametrize("row", [[0.3] * 5, [2.0, 2.0, 1.0, 1.0, 1.0, -3.0], [1.0, 1.0, 0.0], [0.5, 0.0, 0.0, 0.5]])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_ties(normalizer, theirs, row, scale):
    energies = scale * torch.tensor(row, dtype=torch.float64)
    torch.testing.assert_close(normalizer(energies), theirs(energies, -1), rtol=0, atol=1e-12)


@PAIRS
def test_row_without_anything_visible(normalizer, theirs):
    energies = random(3, 7)
    energies[1] = -torch.inf
    assert_same(normalizer, theirs, energies)
    weights, gradient = weights_and_gradient(normalizer, energies, random(3, 7, seed=1))
    assert (weights[1] == 0).all()
    assert (gradient[1] == 0).all()


@PAIRS
@pytest.mark.parametrize("size", [6, 150])
@pytest.mark.parametrize(
    ("pattern", "allows"),
    [
        ("full", lambda i, j: (i >= 0) & (j >= 0)),
        ("causal", lambda i, j: j <= i),
        ("window(3) | global(0)", lambda i, j: ((i - j).abs() <= 3) | (i == 0) | (j == 0)),
        ("strided(7)", lambda i, j: (i - j) % 7 == 0),
    ],
    ids=["full", "causal", "union", "strided"],
)
def test_attention(normalizer, theirs, size, pattern, allows):
    states = [random(2, size, 4, seed=seed).requires_grad_() for seed in range(3)]
    query, key, value = states
    context = regard.attention(query, key, value, score="dot", pattern=pattern, normalizer=normalizer).context
    positions = torch.arange(size)
    energies = (query @ key.mT).masked_fill(~allows(positions[:, None], positions), -torch.inf)
    expected = row_by_row(theirs, energies) @ value
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-10)
    upstream = random(*context.shape, seed=99)
    gradients = torch.autograd.grad(context, states, upstream)
    expected_gradients = torch.autograd.grad(expected, states, upstream)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=1e-10)
