"""Several heads; that they equal torch's own is in test_against_torch."""

import pytest
import torch
from torch import Tensor

from regard import Causal, Full, MultiHead, Strided, Window, attention, per_head


def states(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("score", ["scaled_dot", "dot", "general", "additive", "cosine"])
def test_each_head_is_an_attention_of_its_own(score: str) -> None:
    module = MultiHead(8, 4, score=score, pattern=per_head([Full(), Causal(), Window(1), Strided(2)])).double()
    x = states(2, 6, 8)
    out = module(x, weights=True)
    q, k, v = (layer(x).view(2, 6, 4, 2).transpose(1, 2) for layer in (module.query, module.key, module.value))
    inner = attention(q, k, v, score=module.attention.score, pattern=module.attention.pattern, weights=True)
    joined = torch.cat([inner.context[:, h] for h in range(4)], dim=-1)
    torch.testing.assert_close(out.context, module.output(joined))
    torch.testing.assert_close(out.weights, inner.weights)
    assert out.weights.shape == (2, 4, 6, 6)


def test_cross_attention_of_other_dims() -> None:
    module = MultiHead(8, 2, key_dim=5, value_dim=3).double()
    out = module(states(2, 6, 8), states(2, 7, 5), states(2, 7, 3), lengths=[7, 0], weights=True)
    assert out.context.shape == (2, 6, 8)
    torch.testing.assert_close(out.context[1], module.output.bias.expand(6, 8))  # nothing to look at


def test_fewer_key_and_value_heads_share() -> None:
    shared, full = MultiHead(8, 4, kv_heads=2).double(), MultiHead(8, 4).double()
    full.load_state_dict(shared.state_dict() | full.state_dict())
    for name in ("query", "output"):
        getattr(full, name).load_state_dict(getattr(shared, name).state_dict())
    for name in ("key", "value"):
        small, large = getattr(shared, name), getattr(full, name)
        large.weight.data = small.weight.data.view(2, 2, 8).repeat_interleave(2, 0).reshape(8, 8)
        large.bias.data = small.bias.data.view(2, 2).repeat_interleave(2, 0).reshape(8)
    x = states(2, 6, 8)
    torch.testing.assert_close(shared(x).context, full(x).context)
    assert shared.remember(x).memory.key.shape == (2, 2, 6, 2)


@pytest.mark.parametrize("kv_heads", [4, 1])
def test_cached_decoding(kv_heads: int) -> None:
    module = MultiHead(8, 4, kv_heads=kv_heads, pattern="causal & window(3)").double()
    x = states(2, 7, 8)
    whole = module(x).context
    memory = module.remember(x[:, :1])
    steps = [memory.read(x[:, :1]).context]
    for t in range(1, 7):
        memory = memory.append(x[:, t : t + 1])
        steps.append(memory.read(x[:, t : t + 1], position=t).context)
    torch.testing.assert_close(torch.cat(steps, 1), whole)


def test_select_and_repeat_serve_beams() -> None:
    module = MultiHead(8, 2).double()
    query, key = states(3, 2, 8), states(3, 5, 8)
    whole = module(query, key, lengths=[5, 1, 3]).context
    memory = module.remember(key, lengths=[5, 1, 3])
    rows = torch.tensor([1, 0])
    torch.testing.assert_close(memory.select(rows).read(query[rows]).context, whole[rows])
    repeated = memory.repeat(2).read(query.repeat_interleave(2, 0)).context
    torch.testing.assert_close(repeated, whole.repeat_interleave(2, 0))


def test_padding_reaches_no_parameter() -> None:
    module = MultiHead(8, 2, pattern="window(2)").double()
    x = states(2, 6, 8)
    key = x.clone()
    key[0, 3:] = torch.nan
    out = module(x, key, lengths=[3, 6])
    out.context.sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in module.parameters())


def test_keys_hidden_from_all_reach_no_parameter() -> None:
    module = MultiHead(8, 2).double()
    x = states(2, 6, 8)
    key, allowed = x.clone(), torch.ones(2, 1, 6, 6, dtype=torch.bool)
    key[0, 3:], allowed[0, :, :, 3:] = torch.nan, False
    module(x, key, allowed=allowed).context.sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in module.parameters())


@pytest.mark.parametrize("score", ["general", "additive", "cosine"])
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_scores_with_parameters_per_head_and_shared_keys(score: str, kv_heads: int) -> None:
    module = MultiHead(8, 4, kv_heads=kv_heads, score=score).double()
    x = states(2, 6, 8)
    shared = 4 // kv_heads
    q = module.query(x).view(2, 6, 4, 2).transpose(1, 2)
    k, v = (
        layer(x).view(2, 6, kv_heads, 2).transpose(1, 2).repeat_interleave(shared, 1)
        for layer in (module.key, module.value)
    )
    inner = attention(q, k, v, score=module.attention.score).context
    torch.testing.assert_close(module(x).context, module.output(inner.transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("shape", [(0, 5), (2, 0)])
def test_nothing_to_do(shape: tuple[int, int]) -> None:
    assert MultiHead(8, 4)(torch.randn(*shape, 8)).context.shape == (*shape, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"heads": 4, "pattern": "per_head(full, causal)"}, "pattern: expected one for each of 4 heads, got 2"),
        ({"heads": 4, "dropout": 3}, r"dropout: expected a number in \[0, 1\), got 3"),
        ({"heads": 3}, "heads: expected a divisor of dim = 8, got 3"),
        ({"heads": 4, "kv_heads": 3}, "kv_heads: expected a divisor of heads = 4, got 3"),
        ({"heads": 4, "score": "bilinear"}, "score: expected one of"),
    ],
)
def test_bad_input_is_named(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiHead(8, **arguments)


def test_wrong_features_are_named() -> None:
    module = MultiHead(8, 2, key_dim=5)
    with pytest.raises(ValueError, match=r"query: expected 8 features, got \[2, 6, 3\]"):
        module(torch.zeros(2, 6, 3), torch.zeros(2, 6, 5))
    with pytest.raises(ValueError, match=r"query: expected 8 features, got \[2, 6, 5\]"):
        module(torch.zeros(2, 6, 5))
    with pytest.raises(ValueError, match=r"key: expected 5 features, got \[2, 6, 8\]"):
        module(torch.zeros(2, 6, 8))
