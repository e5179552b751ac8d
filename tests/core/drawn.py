"""Drawn cases: requests over shapes, masks, patterns, empty rows, single tokens, T ≠ S and NaN in padding."""

from dataclasses import dataclass, field

import torch
from hypothesis import strategies as st
from torch import Tensor

from regard import (
    Additive,
    Cosine,
    Dilated,
    Dot,
    Entmax15,
    General,
    Hard,
    Normalizer,
    Pattern,
    ScaledDot,
    Score,
    Softmax,
    Sparsemax,
    Strided,
    per_head,
)
from regard.core import request as requests
from regard.core.request import CallOptions, Request
from tests.core.test_patterns import atoms, patterns

D = torch.float64
DIM = 3
LEADING = [(), (2,), (1, 2), (2, 3)]
NORMALIZERS = [
    Softmax(),
    Softmax(0.6),
    Sparsemax(),
    Entmax15(),
    Hard(),
    Hard("gumbel", 0.7, sample=True),
    Hard("reinforce", sample=True),
    Hard("reinforce"),
]


strides = st.one_of(
    st.builds(Strided, st.integers(2, 6)),
    st.builds(Dilated, st.integers(0, 3), st.integers(2, 4)),
)
strided = st.one_of(strides, st.builds(Pattern.__and__, strides, atoms))
unions = st.one_of(
    st.builds(Pattern.__or__, strided, patterns),
    st.builds(Pattern.__and__, st.builds(Pattern.__or__, strided, patterns), atoms),
)


@dataclass
class Case:
    """A request and the leaves whose gradients matter."""

    request: Request
    leaves: dict[str, Tensor]
    padding: dict[str, Tensor] = field(default_factory=dict)
    """bool masks of key and value that mark padding"""


def scores(heads: int | None) -> st.SearchStrategy[Score]:
    makers = [
        Dot,
        ScaledDot,
        lambda: General(DIM, DIM, heads=heads),
        lambda: Cosine(2.0, learned=True, heads=heads),
        lambda: Additive(DIM, DIM, 4, heads=heads),
        lambda: _wide(Additive(DIM, DIM, 4, bias=True)),
    ]
    return st.sampled_from(makers).map(lambda make: make().to(D))


def _wide(score: Additive) -> Additive:
    """Energies so far out that exponentials would overflow."""
    assert score.bias is not None
    score.bias.data += 60.0
    return score


@st.composite
def cases(  # type: ignore[no-untyped-def]
    draw,
    normalizers: list[Normalizer] = NORMALIZERS,
    chosen: st.SearchStrategy[Pattern] = patterns,
    by_head: bool = False,
    by_pair: bool = True,
) -> Case:
    """`by_pair`: with biases and masks for pairs, beside those for keys."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    leading = draw(st.sampled_from([(2,), (2, 3)] if by_head else LEADING))
    queries, keys = draw(st.integers(1, 14)), draw(st.integers(1, 14))
    heads = leading[-1] if leading else None
    score = draw(scores(draw(st.sampled_from([None, heads]))))
    pattern: Pattern = per_head([draw(chosen) for _ in range(leading[-1])]) if by_head else draw(chosen)
    shapes = [_shared(draw, leading) for _ in range(3)]
    query = torch.randn(*shapes[0], queries, DIM, dtype=D)
    key = torch.randn(*shapes[1], keys, DIM, dtype=D)
    value = torch.randn(*shapes[2], keys, draw(st.sampled_from([DIM, 2])), dtype=D)
    query = query.expand(*leading, queries, DIM).clone() if draw(st.booleans()) else query
    leading = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    lengths, allowed, bias = _masks(draw, leading, queries, keys, by_pair)
    padding = _put_nan(key, value, lengths, allowed, leading)
    leaves = {"query": query, "key": key, "value": value}
    if bias is not None:
        leaves["bias"] = bias
    for leaf in leaves.values():
        leaf.requires_grad_()
    if heads is not None and (not leading or leading[-1] != heads) and (score.heads or by_head):
        score, pattern = ScaledDot(), pattern.patterns[0] if by_head else pattern  # type: ignore[attr-defined]
    options = CallOptions(
        score,
        pattern,
        draw(st.sampled_from(normalizers)),
        bias,
        allowed,
        draw(st.integers(0, 9)),
        draw(st.sampled_from([0.0, 0.0, 0.3])),
        torch.Generator().manual_seed(1),
    )
    request = requests.read(query, key, value, options, lengths)
    leaves |= dict(score.named_parameters())
    return Case(request, leaves, padding)


def _shared(draw, leading: tuple[int, ...]) -> tuple[int, ...]:  # type: ignore[no-untyped-def]
    """The leading dims, or some of them 1 or left out: what broadcasts."""
    shape = tuple(draw(st.sampled_from([n, n, n, 1])) for n in leading)
    return shape[draw(st.sampled_from([0, 0, len(shape)])) :]


def _masks(draw, leading, queries: int, keys: int, by_pair: bool):  # type: ignore[no-untyped-def]
    lengths = allowed = bias = None
    by_pairs = [(*leading, queries, keys), (queries, keys), (1, keys), (keys,), (queries, 1)]
    if draw(st.booleans()):
        prefix = leading[: draw(st.integers(0, len(leading)))]
        lengths = torch.randint(0, keys + 1, prefix)
    if draw(st.booleans()):
        shape = draw(st.sampled_from(by_pairs if by_pair else [(1, keys), (keys,)]))
        allowed = torch.rand(shape) < 0.7
    if by_pair and draw(st.booleans()):
        shape = draw(st.sampled_from(by_pairs))
        bias = torch.randn(shape, dtype=D)
        bias[torch.rand(shape) < 0.1] = -torch.inf
    return lengths, allowed, bias


def _put_nan(key: Tensor, value: Tensor, lengths, allowed, leading) -> dict[str, Tensor]:  # type: ignore[no-untyped-def]
    """NaN wherever a key is padding for every row of the batch that shares it; gives where that is."""
    keys = key.shape[-2]
    seen = torch.ones(*leading, keys, dtype=torch.bool)
    if lengths is not None:
        counts = lengths.view((*lengths.shape, *[1] * (len(leading) - lengths.dim())))
        seen = seen & (torch.arange(keys) < counts[..., None])
    if allowed is not None:
        pairs = allowed if allowed.dim() > 1 else allowed[None]
        seen = seen & pairs.any(-2).expand(*pairs.shape[:-2], keys)
    result = {}
    for name, states in (("key", key), ("value", value)):
        own = states.shape[:-2]
        shared = seen.view(*seen.shape)
        extra = shared.dim() - 1 - len(own)
        shared = shared.flatten(0, extra - 1).any(0) if extra else shared
        for dim, size in enumerate(own):
            if size == 1:
                shared = shared.any(dim, keepdim=True)
        result[name] = ~shared
        states[~shared] = torch.nan
    return result
