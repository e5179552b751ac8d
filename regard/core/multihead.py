"""Multi-head attention: several attentions in parallel, each on its own projections (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Unpack

import torch
from torch import Tensor, nn

from regard.core import checks
from regard.core.attention import Attention, read_score
from regard.core.checks import whole_number
from regard.core.local import LocalPredictive, heads_of
from regard.core.memory import Memory, zero_padding
from regard.core.normalizers import Normalizer, Softmax
from regard.core.patterns import Full, Pattern
from regard.core.request import Lengths, ReadOptions, zero_hidden
from regard.core.result import Result
from regard.core.rotary import rotate
from regard.core.scores import Additive, Cosine, General, Score, at_least_float32
from regard.runtime.packed_product import PackedProduct


class MultiHead(nn.Module):
    """head_h = attention(query W_h, key U_h, value V_h),      context = [head_1; …; head_H] O

    It is self-attention if only a query is given. `score` may be any score for dim / heads features per head; as text
    also "general", "additive" (parameters per head) and "cosine" (a learned τ per head). `pattern` may be a pattern
    per head. `kv_heads` < heads: several query heads share a key and value head (grouped-query attention). `rotary`:
    queries and keys get rotary position embeddings (RoPE); key j is at position j.
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
        for name, number in (("dim", dim), ("heads", heads), ("kv_heads", kv_heads)):
            whole_number("MultiHead", name, number, minimum=1)
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
        pattern_heads = heads_of(self.attention.pattern)
        if pattern_heads not in (None, heads):
            raise ValueError(f"pattern: expected one for each of {heads} heads, got {pattern_heads}")

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        lengths: Lengths | None = None,
        **options: Unpack[ReadOptions],
    ) -> Result:
        """Attend with query [..., T, dim]; return context [..., T, dim], weights [..., heads, T, S], top, lse.

        `key` defaults to `query`, and `value` to `key`. `bias` and `allowed` broadcast to [..., heads, T, S].
        """
        checks.states("query", query, self.query.in_features)
        key = query if key is None else key
        value = key if value is None else value
        allowed = options.get("allowed")
        if isinstance(allowed, Tensor) and allowed.dtype is torch.bool and allowed.dim() > 1:
            key, value = _without_hidden(key, value, allowed)
        return self.remember(key, value, lengths).read(query, **options)

    def remember(
        self, key: Tensor, value: Tensor | None = None, lengths: Lengths | None = None, position: int = 0
    ) -> MultiHeadMemory:
        """Project keys [..., S, key_dim], the first at `position`, and values once, to be read by many queries."""
        value = key if value is None else value
        checks.states("key", key, self.key.in_features)
        checks.states("value", value, self.value.in_features)
        # Zeroed before the projection, so that padding reaches no parameter's gradient.
        key, value, counts = zero_padding(key, value, lengths)
        return MultiHeadMemory(self, self.memory_of(self.key(key), self.value(value), counts, position))

    def memory_of(self, keys: Tensor, values: Tensor, counts: Tensor | None, position: int) -> Memory:
        """Return the cache of projected keys and values [..., S, kv_heads · width]; counts broadcast to [...]."""
        keys, values = split(keys, self.kv_heads), split(values, self.kv_heads)
        if self.rotary:
            keys = rotate(keys, position)
        if self.attention.score.heads is not None:  # parameters per head: the keys of every head differ
            keys, values = self.for_every_head(keys), self.for_every_head(values)
        if counts is not None:
            counts = counts[..., None]  # the same for every head
        return Memory.from_checked(self.attention, keys, values, counts)

    def project(self, states: Tensor, products: Products) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of states, with the product of `Products.for_self_attention`."""
        features = (self.query.out_features, self.key.out_features, self.value.out_features)
        query, key, value = at_least_float32(products.input(states)).split(features, -1)
        return query, key, value

    def for_every_head(self, states: Tensor) -> Tensor:
        """Expand [..., kv_heads, S, width] to [..., heads, S, width]; not copied where all heads share one."""
        if states.shape[-3] == self.heads:
            return states
        group = self.heads // self.kv_heads
        return states.unsqueeze(-3).expand(*states.shape[:-2], group, *states.shape[-2:]).flatten(-4, -3)


class Products(NamedTuple):
    """The packed projections of a `MultiHead`, for many steps without gradients."""

    input: PackedProduct
    """cross-attention: the projection of queries; self-attention: of queries, keys and values, concatenated"""
    output: PackedProduct
    """the projection of contexts"""

    @classmethod
    def for_cross_attention(cls, owner: MultiHead) -> Products:
        """Pack the projections for cross-attention, whose memory is only read."""
        return cls(PackedProduct.of(owner.query), PackedProduct.of(owner.output))

    @classmethod
    def for_self_attention(cls, owner: MultiHead) -> Products:
        """Pack the projections for self-attention, whose memory grows with every step."""
        layers = (owner.query, owner.key, owner.value)
        biases: list[Tensor] = [layer.bias for layer in layers if layer.bias is not None]
        packed = PackedProduct(torch.cat([layer.weight for layer in layers]), torch.cat(biases) if biases else None)
        return cls(packed, PackedProduct.of(owner.output))


@dataclass(frozen=True)
class MultiHeadMemory:
    """A KV cache of every head, to be read step by step. It is immutable: each method returns a new one."""

    owner: MultiHead
    memory: Memory  # [..., kv_heads, S, dim / heads]; with all heads where the score has parameters per head

    def prepare(self) -> MultiHeadMemory:
        """Return the same cache for many reads without gradients: in the dtype in which it is read."""
        return replace(self, memory=self.memory.upcast().prepare())

    def read(self, query: Tensor, *, products: Products | None = None, **options: Unpack[ReadOptions]) -> Result:
        """Attend with query [..., T, dim], the first at `position`; return context [..., T, dim].

        `products`: `Products.for_cross_attention(owner)`, for many reads.
        """
        checks.states("query", query, self.owner.query.in_features)
        project_in, project_out = (self.owner.query, self.owner.output) if products is None else products
        queries = project_in(query)
        if products is not None:
            queries = at_least_float32(queries)  # as `prepare` converted the cache
        return self._read(queries, project_out, **options)

    def _read(self, query: Tensor, project_out: Callable[[Tensor], Tensor], **options: Unpack[ReadOptions]) -> Result:
        """Attend with projected queries [..., T, dim]."""
        queries = split(query, self.owner.heads)
        if self.owner.rotary:
            queries = rotate(queries, options.get("position", 0))
        result = self._for_every_head().read(queries, **options)
        joined = result.context.transpose(-3, -2).flatten(-2)  # [..., T, dim]
        return replace(result, context=project_out(joined))

    def step(self, states: Tensor, products: Products, bias: Tensor | None = None) -> tuple[MultiHeadMemory, Tensor]:
        """Do one step of self-attention: append states [..., n, dim], which attend to all states, themselves included.

        Return (the longer cache, context [..., n, dim]). It is `append` and `read` with one product, that of
        `Products.for_self_attention(owner)`, instead of three.
        """
        position = self.memory.keys
        query, key, value = self.owner.project(states, products)
        longer = replace(self, memory=self.memory.concat(self.owner.memory_of(key, value, None, position)))
        return longer, longer._read(query, products.output, position=position, bias=bias).context

    def _for_every_head(self) -> Memory:
        """Return the memory with keys and values expanded to all heads."""
        key, value = (self.owner.for_every_head(states) for states in (self.memory.key, self.memory.value))
        return self.memory if key is self.memory.key else self.memory.with_states(key, value, self.memory.lengths)

    def select(self, rows: Tensor | Sequence[int]) -> MultiHeadMemory:
        """Return the given rows of the batch, in the given order."""
        return replace(self, memory=self.memory.select(rows))

    def repeat(self, times: int) -> MultiHeadMemory:
        """Return the cache with each row of the batch repeated `times` times."""
        return replace(self, memory=self.memory.repeat(times))

    def append(self, key: Tensor, value: Tensor | None = None) -> MultiHeadMemory:
        """Return the cache with keys [..., n, key_dim] appended."""
        new = self.owner.remember(key, value, position=self.memory.keys)
        return replace(self, memory=self.memory.concat(new.memory))


def split(states: Tensor, heads: int) -> Tensor:
    """Reshape [..., N, heads · width] to [..., heads, N, width]."""
    return states.view(*states.shape[:-1], heads, states.shape[-1] // heads).transpose(-3, -2)


def _without_hidden(key: Tensor, value: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Zero positions that `allowed` [..., heads, T, S] hides from every head and query: padding, which may hold NaN."""
    visible = allowed.any(-2)  # [..., heads, S]
    visible = visible.any(-2) if visible.dim() > 1 else visible
    if visible.shape[-1] != key.shape[-2] or visible.dim() > key.dim() - 1:
        return key, value  # the same for all positions, or a shape that the attention will refuse
    return zero_hidden(key, visible), zero_hidden(value, visible)


def _score(score: Score | str, width: int, heads: int) -> Score:
    """Return the score, which may be given by name, for heads of `width` features."""
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
