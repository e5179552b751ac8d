"""Luong's local attention, by its formulas."""

import pytest
import torch

from regard import Causal, Full, LocalMonotonic, LocalPredictive, Softmax, Window, attention, plan


def test_predictive_follows_the_paper() -> None:
    local = LocalPredictive(4, reach=3, hidden=5).double()
    query, key, value = torch.randn(2, 6, 4).double(), torch.randn(2, 9, 4).double(), torch.randn(2, 9, 3).double()
    lengths = torch.tensor([9, 4])
    out = attention(query, key, value, score="dot", pattern=local, lengths=lengths, weights=True)
    for b in range(2):
        for t in range(6):
            hidden = torch.tanh(local.inner.weight @ query[b, t])
            centre = lengths[b] * torch.sigmoid(local.outer.weight[0] @ hidden)
            near = [j for j in range(int(lengths[b])) if abs(j - centre) <= 3]
            expected = torch.zeros(9).double()
            expected[near] = (key[b, near] @ query[b, t]).softmax(0)
            expected *= torch.exp(-((torch.arange(9) - centre) ** 2) / (2 * 1.5**2))
            torch.testing.assert_close(out.weights[b, t], expected)
            torch.testing.assert_close(out.context[b, t], expected @ value[b])


def test_the_centre_is_learned() -> None:
    local = LocalPredictive(4, reach=2)
    attention(torch.randn(6, 4), torch.randn(9, 4), torch.randn(9, 3), pattern=local).context.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in local.parameters())


def test_places_in_long_texts_are_exact_in_half_precision() -> None:
    local = LocalPredictive(4, reach=2)
    query, key = torch.randn(50, 4).bfloat16(), torch.randn(3000, 4).bfloat16()
    exact = attention(query.float(), key.float(), key.float(), pattern=local, weights=True).weights > 0
    assert torch.equal(attention(query, key, key, pattern=local, weights=True).weights > 0, exact)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = attention(query.float(), key.float(), key.float(), pattern=local, weights=True)
    assert torch.equal(cast.weights > 0, exact)


def test_combines_by_and_only() -> None:
    local = LocalPredictive(4, reach=5)
    for narrowed in (local & Causal(), Causal() & local):
        assert isinstance(narrowed, LocalPredictive) and narrowed.within == Causal()
        assert narrowed.inner is local.inner
        out = attention(torch.randn(6, 4), torch.randn(6, 4), torch.randn(6, 3), pattern=narrowed, weights=True)
        assert (out.weights.triu(1) == 0).all()
    with pytest.raises(TypeError, match="combines by & only"):
        local | Full()
    with pytest.raises(TypeError, match="combines by & only"):
        Full() | local


def test_runs_on_the_reference_and_says_so() -> None:
    x = torch.randn(300, 4)
    result = plan(x, x, x, pattern=LocalPredictive(4, reach=5), normalizer=Softmax())
    assert result.kernel.name == "reference"
    assert "where to look depends on the query" in result.explain()


def test_monotonic_is_a_window_at_the_step() -> None:
    query, key = torch.randn(1, 4), torch.randn(20, 4)
    step = attention(query, key, key, pattern=LocalMonotonic(2), position=7, weights=True)
    assert step.weights.nonzero()[:, 1].tolist() == [5, 6, 7, 8, 9]
    assert LocalMonotonic(2) == Window(2)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="reach: expected a whole number ≥ 1, got 0"):
        LocalPredictive(4, reach=0)
