"""Several attentions side by side, each on its own projection of the states (Vaswani et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.core.attention import Attention, Lengths, read_score
from regard.core.local import LocalPredictive
from regard.core.memory import Memory, zero_padding
from regard.core.normalizers import Normalizer, Softmax
from regard.core.patterns import Full, Pattern
from regard.core.result import Result
from regard.core.scores import Additive, Cosine, General, Score


class MultiHead(nn.Module):
    """head_h = attention(query W_h, key U_h, value V_h),      context = [head_1; …; head_H] O

    Self-attention if only a query is given. `score` may be any score that fits heads of dim / heads features; as text
    also "general", "additive" (parameters per head) and "cosine" (a learned τ per head). `pattern` may be a pattern
    per head. `kv_heads` < heads: several query heads share a key and value head (grouped-query attention).
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
    ) -> None:
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        if heads < 1 or dim % heads:
            raise ValueError(f"heads: expected a divisor of dim = {dim}, got {heads}")
        if kv_heads < 1 or heads % kv_heads:
            raise ValueError(f"kv_heads: expected a divisor of heads = {heads}, got {kv_heads}")
        key_dim = dim if key_dim is None else key_dim
        value_dim = key_dim if value_dim is None else value_dim
        width = dim // heads
        self.heads, self.kv_heads = heads, kv_heads
        self.query = nn.Linear(dim, dim, bias=bias)
        self.key = nn.Linear(key_dim, kv_heads * width, bias=bias)
        self.value = nn.Linear(value_dim, kv_heads * width, bias=bias)
        self.output = nn.Linear(dim, dim, bias=bias)
        self.attention = Attention(_score(score, width, heads), pattern, normalizer, dropout)

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
        memory = self.remember(query if key is None else key, value, lengths)
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

    def remember(self, key: Tensor, value: Tensor | None = None, lengths: Lengths | None = None) -> MultiHeadMemory:
        """Project keys [..., S, key_dim] and values once, to be read by many queries."""
        # Before the projection, so that padding reaches no parameter's gradient.
        key, value, lengths = zero_padding(key, key if value is None else value, lengths)
        keys, values = _split(self.key(key), self.kv_heads), _split(self.value(value), self.kv_heads)
        return MultiHeadMemory(self, Memory.of(self.attention, keys, values, lengths))


@dataclass(frozen=True)
class MultiHeadMemory:
    """Keys and values of every head, to be read step by step. Never changed: each method gives a new one."""

    owner: MultiHead
    memory: Memory
    """of the kv_heads: [..., kv_heads, S, dim / heads]"""

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
    ) -> Result:
        """query [..., T, dim], the first of them at `position` → context [..., T, dim]."""
        result = self._for_every_head().read(
            _split(self.owner.query(query), self.owner.heads),
            position=position,
            bias=bias,
            allowed=allowed,
            weights=weights,
            top=top,
            lse=lse,
            generator=generator,
        )
        joined = result.context.transpose(-3, -2).flatten(-2)  # [..., T, dim]
        return replace(result, context=self.owner.output(joined))

    def _for_every_head(self) -> Memory:
        shared = self.owner.heads // self.owner.kv_heads
        if shared == 1:
            return self.memory
        key, value = (x.repeat_interleave(shared, -3) for x in (self.memory.key, self.memory.value))
        return replace(self.memory, key=key, value=value)

    def select(self, rows: Tensor) -> MultiHeadMemory:
        """The given rows of the batch, in the given order."""
        return replace(self, memory=self.memory.select(rows))

    def repeat(self, times: int) -> MultiHeadMemory:
        """Each row of the batch `times` times in a row."""
        return replace(self, memory=self.memory.repeat(times))

    def append(self, key: Tensor, value: Tensor | None = None) -> MultiHeadMemory:
        """With more keys [..., n, key_dim] behind those that are there: the cache of a decoder."""
        return replace(self, memory=self.memory.joined(self.owner.remember(key, value).memory))


def _split(states: Tensor, heads: int) -> Tensor:
    """[..., N, heads · width] → [..., heads, N, width]"""
    return states.view(*states.shape[:-1], heads, -1).transpose(-3, -2)


def _score(score: Score | str, width: int, heads: int) -> Score:
    if score == "general":
        return General(width, width, heads=heads)
    if score == "additive":
        return Additive(width, width, hidden=width, heads=heads)
    if score == "cosine":
        return Cosine(learned=True, heads=heads)
    return read_score(score)
