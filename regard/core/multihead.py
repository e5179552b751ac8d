"""Several attentions side by side, each on its own projection of the states (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.core import checks
from regard.core.attention import Attention, read_score
from regard.core.checks import whole_number
from regard.core.local import LocalPredictive, heads_of
from regard.core.memory import Memory, zero_padding
from regard.core.normalizers import Normalizer, Softmax
from regard.core.patterns import Full, Pattern
from regard.core.request import Lengths, without_padding
from regard.core.result import Result
from regard.core.rotary import rotate
from regard.core.scores import Additive, Cosine, General, Score, wide
from regard.runtime.packed_product import Product


class MultiHead(nn.Module):
    """head_h = attention(query W_h, key U_h, value V_h),      context = [head_1; …; head_H] O

    Self-attention if only a query is given. `score` may be any score that fits heads of dim / heads features; as text
    also "general", "additive" (parameters per head) and "cosine" (a learned τ per head). `pattern` may be a pattern
    per head. `kv_heads` < heads: several query heads share a key and value head (grouped-query attention). `rotary`:
    queries and keys are turned by their positions; key j stands at j.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        score: Score | str = "scaled_dot",
        pattern: Pattern | LocalPredictive | str = Full(),  # noqa: B008, a frozen value
        normalizer: Normalizer | str = Softmax(),  # noqa: B008, a frozen value
        dropout: float = 0.0,
        bias: bool = True,
        rotary: bool = False,
    ) -> None:
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        whole_number("MultiHead", "dim", dim, least=1)
        for name, number in (("heads", heads), ("kv_heads", kv_heads)):
            whole_number("MultiHead", name, number, least=1)
        if dim % heads:
            raise ValueError(f"heads: expected a divisor of dim = {dim}, got {heads}")
        if heads % kv_heads:
            raise ValueError(f"kv_heads: expected a divisor of heads = {heads}, got {kv_heads}")
        key_dim = dim if key_dim is None else key_dim
        value_dim = key_dim if value_dim is None else value_dim
        width = dim // heads
        if rotary and width % 2:
            raise ValueError(f"rotary: expected an even number of features a head, got {dim} / {heads} = {width}")
        self.heads, self.kv_heads, self.rotary = heads, kv_heads, rotary
        self.query = nn.Linear(dim, dim, bias=bias)
        self.key = nn.Linear(key_dim, kv_heads * width, bias=bias)
        self.value = nn.Linear(value_dim, kv_heads * width, bias=bias)
        self.output = nn.Linear(dim, dim, bias=bias)
        self.attention = Attention(_score(score, width, heads), pattern, normalizer, dropout)
        planned = heads_of(self.attention.pattern)
        if planned not in (None, heads):
            raise ValueError(f"pattern: expected one for each of {heads} heads, got {planned}")

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        lengths: Lengths | None = None,
        allowed: Tensor | None = None,
        position: int = 0,
        weights: bool = False,
        top: int | None = None,
        lse: bool = False,
        generator: torch.Generator | None = None,
    ) -> Result:
        """query [..., T, dim] → context [..., T, dim]; weights [..., heads, T, S], and so for top and lse.

        `key` is `query`, and `value` is `key`, if not given. `bias` and `allowed` broadcast to [..., heads, T, S].
        """
        checks.states("query", query, self.query.in_features)
        key = query if key is None else key
        value = key if value is None else value
        if isinstance(allowed, Tensor) and allowed.dtype is torch.bool and allowed.dim() > 1:
            key, value = _without_hidden(key, value, allowed)
        memory = self.remember(key, value, lengths)
        return memory.read(
            query,
            position=position,
            bias=bias,
            allowed=allowed,
            weights=weights,
            top=top,
            lse=lse,
            generator=generator,
        )

    def remember(
        self, key: Tensor, value: Tensor | None = None, lengths: Lengths | None = None, position: int = 0
    ) -> MultiHeadMemory:
        """Project keys [..., S, key_dim], the first at `position`, and values once, to be read by many queries."""
        value = key if value is None else value
        checks.states("key", key, self.key.in_features)
        checks.states("value", value, self.value.in_features)
        # Before the projection, so that padding reaches no parameter's gradient.
        key, value, counts = zero_padding(key, value, lengths)
        return MultiHeadMemory(self, self.kept(self.key(key), self.value(value), counts, position))

    def kept(self, keys: Tensor, values: Tensor, counts: Tensor | None, position: int) -> Memory:
        """Of projected keys and values [..., S, kv_heads · width]; counts broadcast to [...]."""
        keys, values = split(keys, self.kv_heads), split(values, self.kv_heads)
        if self.rotary:
            keys = rotate(keys, position)
        if self.attention.score.heads is not None:  # parameters per head: the keys of every head differ
            keys, values = self.for_every_head(keys), self.for_every_head(values)
        if counts is not None:
            counts = counts[..., None]  # the same for every head
        return Memory.ready(self.attention, keys, values, counts)

    def for_every_head(self, states: Tensor) -> Tensor:
        """[..., kv_heads, S, width] → [..., heads, S, width]; not copied where one head serves all."""
        if states.shape[-3] == self.heads:
            return states
        shared = self.heads // self.kv_heads
        repeated = states.unsqueeze(-3).expand(*states.shape[:-2], shared, *states.shape[-2:])
        return repeated.flatten(-4, -3)


class Products(NamedTuple):
    """The projections of a `MultiHead`, made ready for many steps without gradients."""

    asked: Product
    """of a memory that is read, the projection of queries; of one that grows, of queries, keys and values, one behind
    the other"""
    answered: Product
    """the projection of contexts"""

    @classmethod
    def reading(cls, owner: MultiHead) -> Products:
        return cls(Product.of(owner.query), Product.of(owner.output))

    @classmethod
    def growing(cls, owner: MultiHead) -> Products:
        parts = (owner.query, owner.key, owner.value)
        weights: list[Tensor] = [part.weight for part in parts]
        biases: list[Tensor] = [part.bias for part in parts if part.bias is not None]
        together = Product(torch.cat(weights), torch.cat(biases) if biases else None)
        return cls(together, Product.of(owner.output))


@dataclass(frozen=True)
class MultiHeadMemory:
    """Keys and values of every head, to be read step by step. Never changed: each method gives a new one."""

    owner: MultiHead
    memory: Memory
    """of the kv_heads, [..., kv_heads, S, dim / heads]; of all heads where the score has parameters per head"""

    def ready(self) -> MultiHeadMemory:
        """The same for many reads without gradients: in the numbers in which it is read."""
        return replace(self, memory=self.memory.widened())

    def read(
        self,
        query: Tensor,
        *,
        position: int = 0,
        bias: Tensor | None = None,
        allowed: Tensor | None = None,
        weights: bool = False,
        top: int | None = None,
        lse: bool = False,
        generator: torch.Generator | None = None,
        products: Products | None = None,
    ) -> Result:
        """query [..., T, dim], the first of them at `position` → context [..., T, dim].

        `products`, where many reads are to come: `Products.reading(owner)`.
        """
        checks.states("query", query, self.owner.query.in_features)
        asked, answered = (self.owner.query, self.owner.output) if products is None else products
        queries = asked(query)
        return self._read(
            queries if products is None else wide(queries),  # as what is read was made ready
            answered,
            position=position,
            bias=bias,
            allowed=allowed,
            weights=weights,
            top=top,
            lse=lse,
            generator=generator,
        )

    def _read(self, query: Tensor, answered: Callable[[Tensor], Tensor], *, position: int, **options: Any) -> Result:
        """By projected queries [..., T, dim]."""
        queries = split(query, self.owner.heads)
        if self.owner.rotary:
            queries = rotate(queries, position)
        result = self._for_every_head().read(queries, position=position, **options)
        joined = result.context.transpose(-3, -2).flatten(-2)  # [..., T, dim]
        return replace(result, context=answered(joined))

    def step(self, states: Tensor, products: Products, bias: Tensor | None = None) -> tuple[MultiHeadMemory, Tensor]:
        """Self-attention goes on: states [..., n, dim] are appended, and look back at all there is, themselves too.

        → (the longer memory, context [..., n, dim]); as `append` and `read`, with one product, of
        `Products.growing(owner)`, instead of three.
        """
        owner, position = self.owner, self.memory.keys
        features = (owner.query.out_features, owner.key.out_features, owner.value.out_features)
        query, key, value = wide(products.asked(states)).split(features, -1)
        longer = replace(self, memory=self.memory.joined(owner.kept(key, value, None, position)))
        return longer, longer._read(query, products.answered, position=position, bias=bias).context

    def _for_every_head(self) -> Memory:
        key, value = (self.owner.for_every_head(states) for states in (self.memory.key, self.memory.value))
        return self.memory if key is self.memory.key else replace(self.memory, key=key, value=value)

    def changed(self, change: Callable[[Tensor], Tensor]) -> MultiHeadMemory:
        """The same memory, in which every read has its weights [..., heads, T, S] changed."""
        return replace(self, memory=self.memory.changed(change))

    def select(self, rows: Tensor | Sequence[int]) -> MultiHeadMemory:
        """The given rows of the batch, in the given order."""
        return replace(self, memory=self.memory.select(rows))

    def repeat(self, times: int) -> MultiHeadMemory:
        """Each row of the batch `times` times in a row."""
        return replace(self, memory=self.memory.repeat(times))

    def append(self, key: Tensor, value: Tensor | None = None) -> MultiHeadMemory:
        """With more keys [..., n, key_dim] behind those that are there: the cache of a decoder."""
        behind = self.owner.remember(key, value, position=self.memory.keys)
        return replace(self, memory=self.memory.joined(behind.memory))


def split(states: Tensor, heads: int) -> Tensor:
    """[..., N, heads · width] → [..., heads, N, width]"""
    return states.view(*states.shape[:-1], heads, states.shape[-1] // heads).transpose(-3, -2)


def _without_hidden(key: Tensor, value: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """0 where `allowed` [..., heads, T, S] hides a position from every head and query: padding, whatever it holds."""
    seen = allowed.any(-2)  # [..., heads, S]
    seen = seen.any(-2) if seen.dim() > 1 else seen
    if seen.shape[-1] != key.shape[-2] or seen.dim() > key.dim() - 1:
        return key, value  # one for all positions, or a shape that the attention will refuse
    return without_padding(key, seen), without_padding(value, seen)


def _score(score: Score | str, width: int, heads: int) -> Score:
    if score == "general":
        return General(width, width, heads=heads)
    if score == "additive":
        return Additive(width, width, hidden=width, heads=heads)
    if score == "cosine":
        return Cosine(learned=True, heads=heads)
    if isinstance(score, str) and score not in ("dot", "scaled_dot"):
        known = "'dot', 'scaled_dot', 'cosine', 'general', 'additive'"
        raise ValueError(f"score: expected one of {known}, got {score!r}")
    return read_score(score)
