"""Each score's definition, and that what it hands to kernels says the same."""

import math

import pytest
import torch

from regard import Additive, Cosine, Dot, General, ScaledDot, Score
from regard.core.scores import terms_of

D = torch.float64


def every_score(heads: int | None = None) -> list[Score]:
    """All scores, for queries of 4 and keys of 4 features."""
    return [
        Dot(),
        ScaledDot(),
        General(4, 4, heads=heads).to(D),
        Cosine(3.0, learned=True, heads=heads).to(D),
        Additive(4, 4, 5, bias=True, heads=heads).to(D),
    ]


def states(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=D)


def test_definitions_for_one_pair() -> None:
    q, k = states(4), states(4)
    general, additive = General(4, 4).to(D), Additive(4, 4, 5).to(D)
    assert additive.query_weight is not None and additive.key_weight is not None
    expected = {
        Dot(): q @ k,
        ScaledDot(): q @ k / 2,
        general: q @ general.weight @ k,
        Cosine(2.0): 2 * (q @ k) / (q.norm() * k.norm()),
        additive: additive.vector @ torch.tanh(additive.query_weight @ q + additive.key_weight @ k),
    }
    for score, energy in expected.items():
        assert math.isclose(score.energies(q[None], k[None]).item(), energy.item(), rel_tol=1e-6)


@pytest.mark.parametrize("heads", [None, 3])
@pytest.mark.parametrize("which", range(5))
def test_kernels_are_handed_the_same_energies(which: int, heads: int | None) -> None:
    score = every_score(heads)[which]
    query, key = states(2, 3, 6, 4), states(2, 3, 7, 4)
    terms = score.terms(query, score.key_side(key))
    assert terms is not None
    expected = score.energies(query, key)
    torch.testing.assert_close(terms.energies(), expected)
    torch.testing.assert_close(terms_of(score, query, score.key_side(key)).energies(), expected)


def test_heads_have_parameters_of_their_own() -> None:
    for score in every_score(heads=3)[2:]:
        assert score.heads == 3
        query, key = states(3, 6, 4), states(3, 7, 4)
        energies = score.energies(query, key)
        for parameter in score.parameters():
            parameter.data[1] += 0.5
        changed = (score.energies(query, key) - energies).abs().amax((1, 2))
        assert changed[0] == 0 and changed[1] > 0 and changed[2] == 0


def test_different_dims_where_parameters_allow() -> None:
    assert General(3, 5).to(D).energies(states(2, 3), states(4, 5)).shape == (2, 4)
    assert Additive(3, 5, 7).to(D).energies(states(2, 3), states(4, 5)).shape == (2, 4)


def test_cosine_of_a_zero_vector_is_zero_with_zero_gradient() -> None:
    query = torch.zeros(1, 4, dtype=D, requires_grad=True)
    key = states(3, 4).requires_grad_()
    energies = Cosine().energies(query, key)
    energies.sum().backward()
    assert (energies == 0).all()
    assert query.grad is not None and (query.grad == 0).all()
    assert key.grad is not None and (key.grad == 0).all()


def test_tau_is_learned_only_when_asked() -> None:
    assert list(Cosine(2.0).parameters()) == []
    assert [p.shape for p in Cosine(2.0, learned=True, heads=4).parameters()] == [(4,)]
    with pytest.raises(ValueError, match="tau: expected a number > 0, got 0"):
        Cosine(0)


def test_additive_without_projections_takes_projected_states() -> None:
    full, bare = Additive(4, 4, 5).to(D), Additive(None, None, 5).to(D)
    bare.vector = full.vector
    query, key = states(3, 4), states(6, 4)
    assert full.query_weight is not None
    projected = query @ full.query_weight.T
    torch.testing.assert_close(bare.energies(projected, full.key_side(key)), full.energies(query, key))
    assert bare.expects() == (5, 5)
