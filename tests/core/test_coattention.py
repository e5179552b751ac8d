"""Both directions from one set of energies."""

import pytest
import torch

from regard import Additive, Entmax15, General, Hard, Softmax, attention, coattend


@pytest.mark.parametrize("normalizer", [Softmax(0.7), Entmax15(), Hard()], ids=lambda n: type(n).__name__)
def test_is_attention_in_both_directions(normalizer) -> None:
    a, b = torch.randn(2, 5, 4).double(), torch.randn(2, 6, 4).double()
    bias = torch.randn(5, 6).double()
    both = coattend(a, b, normalizer=normalizer, bias=bias)
    forward_order = attention(a, b, b, normalizer=normalizer, bias=bias, weights=True)
    back = attention(b, a, a, normalizer=normalizer, bias=bias.T, weights=True)
    for result, expected in ((both.a, forward_order), (both.b, back)):
        torch.testing.assert_close(result.context, expected.context)
        torch.testing.assert_close(result.weights, expected.weights)


@pytest.mark.parametrize("score", [General(4, 3).double(), Additive(4, 3, 5).double()], ids=["general", "additive"])
def test_energies_are_shared_even_where_the_score_is_not_symmetric(score) -> None:
    a, b = torch.randn(2, 5, 4).double(), torch.randn(2, 6, 3).double()
    both = coattend(a, b, score=score)
    energies = score.energies(a, b)
    torch.testing.assert_close(both.a.context, energies.softmax(-1) @ b)
    torch.testing.assert_close(both.b.context, energies.softmax(-2).mT @ a)
    both.b.context.sum().backward()
    assert all(p.grad is not None for p in score.parameters())


def test_padding_neither_looks_nor_is_looked_at() -> None:
    a, b = torch.randn(2, 5, 4).double(), torch.randn(2, 6, 4).double()
    clean = coattend(a[:1, :3], b[:1, :2])
    a[0, 3:], b[0, 2:] = torch.nan, torch.nan
    a.requires_grad_()
    both = coattend(a, b, lengths_a=[3, 5], lengths_b=[2, 0])
    torch.testing.assert_close(both.a.context[0, :3], clean.a.context[0])
    torch.testing.assert_close(both.b.context[0, :2], clean.b.context[0])
    assert (both.a.context[0, 3:] == 0).all() and (both.b.context[0, 2:] == 0).all()
    assert (both.a.context[1] == 0).all() and (both.b.context[1] == 0).all()
    (both.a.context.sum() + both.b.context.sum()).backward()
    assert a.grad is not None and torch.isfinite(a.grad).all()


def test_masks_and_biases_of_few_dims_count_in_both_directions() -> None:
    a, b = torch.randn(2, 5, 4).double(), torch.randn(2, 6, 4).double()
    allowed, bias = torch.tensor([True, False, True, True, False, True]), torch.randn(6).double()
    result = coattend(a, b, allowed=allowed, bias=bias)
    expected = coattend(a, b, allowed=allowed.expand(5, 6), bias=bias.expand(5, 6))
    torch.testing.assert_close(result.a.context, expected.a.context)
    torch.testing.assert_close(result.b.context, expected.b.context)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="a, b: expected leading dims that broadcast"):
        coattend(torch.zeros(2, 5, 4), torch.zeros(3, 6, 4))
    a, b = torch.zeros(2, 5, 4), torch.zeros(2, 6, 4)
    with pytest.raises(ValueError, match="lengths_b: expected 0 … 6"):
        coattend(a, b, lengths_b=[7, 1])
    with pytest.raises(ValueError, match="allowed: expected a shape"):
        coattend(a, b, allowed=torch.ones(6, 5).bool())
