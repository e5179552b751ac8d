"""Weights over several embeddings of one word: the definition written out, and words that an embedding lacks."""

import pytest
import torch

from regard import Representations, Sparsemax

D = torch.float64


def made() -> tuple[Representations, list[torch.Tensor]]:
    torch.manual_seed(0)
    module = Representations([3, 5, 2], 4).to(D)
    return module, [torch.randn(2, 6, width, dtype=D, requires_grad=True) for width in (3, 5, 2)]


def test_the_definition_written_out() -> None:
    """Kiela et al. 2018: project, score each by a learned vector, softmax over the representations, sum."""
    module, given = made()
    out = module(given, weights=True)
    assert out.context.shape == (2, 6, 4) and out.weights.shape == (2, 6, 3)
    for b in range(2):
        for s in range(6):
            projected = [p(x[b, s]) for p, x in zip(module.project, given, strict=True)]
            shares = torch.stack([module.pool.query[0] @ x for x in projected]).softmax(0)
            torch.testing.assert_close(out.weights[b, s], shares)
            torch.testing.assert_close(out.context[b, s], sum(a * x for a, x in zip(shares, projected, strict=True)))


def test_unknown_words_are_not_looked_at() -> None:
    module, given = made()
    known = torch.rand(2, 6, 3) < 0.6
    known[0, 0] = False
    known[0, 1] = True
    broken = [x.detach().clone() for x in given]
    for number, x in enumerate(broken):
        x[~known[..., number]] = torch.nan
        x.requires_grad_()
    out = module(broken, known=known, weights=True)
    assert (out.weights[~known] == 0).all() and (out.context[0, 0] == 0).all()
    torch.testing.assert_close(out.context[0, 1], module(given).context[0, 1])
    out.context.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in module.parameters())
    for number, x in enumerate(broken):
        assert torch.isfinite(x.grad).all() and (x.grad[~known[..., number]] == 0).all()


def test_learns_which_to_trust() -> None:
    """One representation is noise: it ends with next to no weight."""
    torch.manual_seed(1)
    truth, noise = torch.randn(512, 1, 8), torch.randn(512, 1, 8)
    module = Representations([8, 8], 8)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        loss = (module([truth, noise]).context - truth).square().mean()
        loss.backward()
        optimizer.step()
    shares = module([truth, noise], weights=True).weights.mean((0, 1))
    assert shares[0] > 0.9 and loss < 0.1


def test_sparse_choice() -> None:
    module = Representations([3, 3], 4, normalizer=Sparsemax())
    module.pool.query.data *= 50
    weights = module([torch.randn(5, 3), torch.randn(5, 3)], weights=True).weights
    assert (weights == 0).any() and torch.allclose(weights.sum(-1), torch.ones(5))


def test_says_what_is_wrong() -> None:
    module, given = made()
    with pytest.raises(ValueError, match="representations: expected 3, got 2"):
        module(given[:2])
    with pytest.raises(ValueError, match=r"representations\[1\]: expected 5 features, got \[2, 6, 3\]"):
        module([given[0], given[0], given[2]])
    with pytest.raises(ValueError, match="dims: expected a width for each"):
        Representations([], 4)
    with pytest.raises(TypeError, match="known: expected bool"):
        module(given, known=torch.ones(2, 6, 3))
