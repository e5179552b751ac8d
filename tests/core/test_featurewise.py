"""A weight for each feature: against the definition, against torch feature by feature, and against additive heads."""

import math

import pytest
import torch
from torch import Tensor

from regard import (
    Additive,
    Causal,
    Dot,
    Entmax15,
    FeatureAdditive,
    FeaturePool,
    FeatureTanh,
    Featurewise,
    Grid,
    Pattern,
    Sparsemax,
    Strided,
    Window,
    attention,
    featurewise,
    parse_pattern,
    per_head,
)
from regard.core import featurewise as module

D = torch.float64


def states(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=D, requires_grad=True)


def test_the_definition_written_out() -> None:
    torch.manual_seed(0)
    score = FeatureAdditive(3, 4, 2, hidden=5).to(D)
    query, key, value = states(6, 3), states(7, 4), states(7, 2)
    out = featurewise(query, key, value, score=score, weights=True)
    w, b, u, v = score.query.weight, score.query.bias, score.key.weight, score.output.weight
    for t in range(6):
        for d in range(2):
            energies = torch.stack([v[d] @ torch.tanh(w @ query[t] + u @ key[s] + b) for s in range(7)])
            exps = energies.exp()
            torch.testing.assert_close(out.weights[t, :, d], exps / exps.sum())
            torch.testing.assert_close(out.context[t, d], (exps / exps.sum() * value[:, d]).sum())


def test_directional_self_attention_is_bounded() -> None:
    """DiSAN's own score: c · tanh((W q + U k + b) / c), c = 5."""
    score = FeatureTanh(3, 3, 3).to(D)
    x = states(2, 5, 3)
    energies = score.by_feature(x, x)
    inner = score.query(x)[:, :, None] + score.key(x)[:, None]
    torch.testing.assert_close(energies, 5 * torch.tanh(inner / 5))
    assert score.by_feature(1e3 * x, 1e3 * x).abs().max() <= 5


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize(
    "pattern", ["full", "causal", "window(2)", "strided(3)", "grid(3, 4).axial", "global(1) & causal"]
)
def test_each_feature_is_torchs_attention_over_its_own_energies(
    pattern: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch adds the energies of one feature as a mask of floats to products of zeros."""
    if small:
        monkeypatch.setattr(module, "_MAX_ELEMENTS", 100)  # many blocks, each formed again in the backward pass
    torch.manual_seed(1)
    score = FeatureAdditive(3, 4, 5).to(D)
    query, key, value = states(2, 9, 3), states(2, 12, 4), states(2, 12, 5)
    lengths = torch.tensor([12, 7])
    allowed = torch.rand(2, 9, 12) < 0.8
    out = featurewise(query, key, value, score=score, pattern=pattern, lengths=lengths, allowed=allowed, position=2)
    mask = parse_pattern(pattern).mask(9, 12, 2) & allowed & (torch.arange(12) < lengths[:, None, None])
    some = mask.any(-1)
    energies = score.by_feature(query, key).masked_fill(~mask[..., None], -torch.inf)
    energies = torch.where(some[..., None, None], energies, 0)
    columns = [
        torch.nn.functional.scaled_dot_product_attention(
            query.new_zeros(2, 9, 1), query.new_zeros(2, 12, 1), value[..., d : d + 1], attn_mask=energies[..., d]
        )
        for d in range(5)
    ]
    expected = torch.cat(columns, -1) * some[..., None]
    torch.testing.assert_close(out.context, expected)
    leaves = [query, key, value, *score.parameters()]
    for mine, theirs in zip(
        torch.autograd.grad(out.context.sin().sum(), leaves, retain_graph=True),
        torch.autograd.grad(expected.sin().sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("normalizer", ["softmax", Sparsemax(), Entmax15()])
@pytest.mark.parametrize("pattern", [Causal(), Window(1), Strided(2), Grid(2, 4).column()])
def test_equals_additive_heads_of_width_one(normalizer, pattern: Pattern) -> None:  # type: ignore[no-untyped-def]
    """An additive score with parameters per head, all heads with the same W and U, through the other kernels."""
    torch.manual_seed(2)
    score = FeatureAdditive(3, 3, 4, hidden=6).to(D)
    heads = Additive(3, 3, 6, bias=True, heads=4).to(D)
    heads.load_state_dict(
        {
            "query_weight": score.query.weight.expand(4, 6, 3),
            "key_weight": score.key.weight.expand(4, 6, 3),
            "bias": score.query.bias.expand(4, 6),
            "vector": score.output.weight,
        }
    )
    x, value = states(2, 8, 3), states(2, 8, 4)
    mine = featurewise(x, x, value, score=score, pattern=pattern, normalizer=normalizer, weights=True)
    each = x[:, None].expand(-1, 4, -1, -1)
    theirs = attention(
        each, each, value.mT[..., None], score=heads, pattern=pattern, normalizer=normalizer, weights=True
    )
    torch.testing.assert_close(mine.context, theirs.context[..., 0].mT)
    torch.testing.assert_close(mine.weights, theirs.weights.movedim(1, -1))


def test_padding_and_empty_rows() -> None:
    score = FeatureAdditive(3, 3, 3).to(D)
    x = torch.randn(2, 5, 3, dtype=D)
    x[1, 2:] = torch.nan
    query = states(2, 4, 3)
    out = featurewise(query, x, x, score=score, lengths=[5, 2], weights=True)
    assert torch.isfinite(out.context).all() and (out.weights[1, :, 2:] == 0).all()
    torch.testing.assert_close(out.weights.sum(-2), torch.ones(2, 4, 3, dtype=D))
    nothing = featurewise(query, x, x, score=score, lengths=[0, 0], weights=True)
    assert (nothing.context == 0).all() and (nothing.weights == 0).all()
    nothing.context.sum().backward()
    assert torch.isfinite(query.grad).all()


def test_blocks_hold_few_numbers_and_only_keys_in_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand positions with a window: never [T, S, D], in training either."""
    largest = 0

    class Watched(FeatureTanh):
        def by_feature(self, query: Tensor, key: Tensor) -> Tensor:
            nonlocal largest
            energies = super().by_feature(query, key)
            largest = max(largest, energies.numel())
            return energies

    monkeypatch.setattr(module, "_MAX_ELEMENTS", 1 << 18)
    score = Watched(8, 8, 8)
    x = torch.randn(2000, 8, requires_grad=True)
    out = featurewise(x, x, x, score=score, pattern=Window(10), weights=True)
    assert (out.weights > 0).sum(1).max() == 21
    out.context.sum().backward()
    assert largest <= 1 << 18  # of 2000 × 2000 × 8 there are 122 times as many
    assert x.grad is not None and math.isfinite(x.grad.sum())


def test_dropout_follows_the_generator_and_is_the_same_in_the_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_ELEMENTS", 100)
    score = FeatureTanh(3, 3, 3).to(D)
    x, value = states(10, 3), states(10, 3)

    def run(seed: int) -> Tensor:
        noise = torch.Generator().manual_seed(seed)
        return featurewise(x, x, value, score=score, dropout=0.5, generator=noise).context

    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))
    # Linear in the values: with the same noise, Σ gradient · value is the sum of the context.
    (gradient,) = torch.autograd.grad(run(1).sum(), [value])
    torch.testing.assert_close((gradient * value).sum(), run(1).sum())


def test_module_and_pool() -> None:
    torch.manual_seed(3)
    x = torch.randn(2, 6, 4)
    attend = Featurewise(FeatureTanh(4, 4, 4), pattern="causal", dropout=0.2).eval()
    assert attend(x).context.shape == (2, 6, 4)
    torch.testing.assert_close(attend(x).context[:, 0], x[:, 0])  # the first looks at itself alone
    pool = FeaturePool(4)
    out = pool(x, lengths=[6, 3], weights=True)
    assert out.context.shape == (2, 4) and out.weights.shape == (2, 6, 4)
    energies = pool.attend.score.by_feature(pool.query, x[1, :3])[0]
    torch.testing.assert_close(out.weights[1, :3], energies.softmax(0))
    torch.testing.assert_close(out.context[1], (energies.softmax(0) * x[1, :3]).sum(0))
    hidden = pool(x, allowed=torch.tensor([True, False, True, True, True, True]), weights=True)
    assert (hidden.weights[:, 1] == 0).all()


def test_half_precision_inside_autocast() -> None:
    x = torch.randn(2, 6, 8)
    attend = Featurewise(FeatureAdditive(8, 8, 8))
    with torch.autocast("cpu", torch.bfloat16):
        result = attend(x).context
    torch.testing.assert_close(result.float(), attend(x).context, rtol=0.05, atol=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"score": Dot()}, "score: expected a FeatureScore"),
        ({"pattern": per_head([Causal()] * 3)}, "pattern: expected one that all features share"),
        ({"normalizer": "hard"}, "normalizer: expected one that weighs"),
        ({"value": torch.randn(5, 4)}, r"value: expected 3 features, got \[5, 4\]"),
        ({"lengths": [9]}, "lengths: expected"),
        ({"allowed": torch.ones(4, 4)}, "allowed: expected bool"),
        ({"dropout": 1.5}, "dropout: expected a number"),
        ({"position": -1}, "position: expected a whole number"),
        ({"query": torch.randn(4, 7)}, "query: expected 3 features for FeatureTanh"),
    ],
)
def test_says_what_is_wrong(arguments, message: str) -> None:  # type: ignore[no-untyped-def]
    given = {"query": torch.randn(4, 3), "key": torch.randn(5, 3), "value": torch.randn(5, 3)}
    given["score"] = FeatureTanh(3, 3, 3)
    given |= arguments
    with pytest.raises((ValueError, TypeError), match=message):
        featurewise(given.pop("query"), given.pop("key"), given.pop("value"), **given)
