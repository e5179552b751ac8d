"""A learned query over the states."""

import pytest
import torch

from regard import Additive, Hard, Pool, attention


def test_is_attention_of_a_learned_query() -> None:
    pool = Pool(6).double()
    states = torch.randn(3, 7, 6).double()
    out = pool(states, lengths=[7, 2, 0], weights=True, top=2)
    assert out.context.shape == (3, 6) and out.weights.shape == (3, 7) and out.top.positions.shape == (3, 2)
    expected = attention(pool.query, states[:2], states[:2], score=pool.attention.score, lengths=[7, 2])
    torch.testing.assert_close(out.context[:2], expected.context[:, 0])
    assert (out.context[2] == 0).all() and (out.weights[1, 2:] == 0).all()


def test_several_queries_keep_their_dim() -> None:
    out = Pool(6, queries=4, score=Additive(6, 6, 3))(torch.randn(3, 7, 6), weights=True)
    assert out.context.shape == (3, 4, 6) and out.weights.shape == (3, 4, 7)


def test_the_query_and_the_score_learn() -> None:
    pool = Pool(6, normalizer=Hard())
    out = pool(torch.randn(3, 7, 6))
    assert out.chosen.shape == (3,) and out.log_probability.shape == (3,)
    out.context.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in pool.parameters())


def test_states_that_may_not_be_looked_at() -> None:
    allowed = torch.tensor([True, False, True])
    out = Pool(4)(torch.randn(2, 3, 4), allowed=allowed, weights=True)
    assert (out.weights[:, 1] == 0).all()


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="queries: expected a whole number ≥ 1, got 0"):
        Pool(4, queries=0)
