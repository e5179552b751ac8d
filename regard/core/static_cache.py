"""A KV cache in static buffers, which a CUDA graph of decoding steps updates in place.

N rows of the batch, L positions that the buffers have room for, H heads of D features.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.kernels.few_queries import unsupported
from regard.core.memory import Memory
from regard.core.multihead import MultiHead, MultiHeadMemory, Products, split
from regard.core.patterns import Causal, Full
from regard.core.plan import run
from regard.core.request import CachedStates, CallOptions, read_cached


@dataclass(frozen=True)
class StaticKVCache:
    """The keys and values of a decoder's self-attention. `step` and `reorder_` change them in place."""

    owner: MultiHead
    key: Tensor
    value: Tensor  # [N, kv_heads or, where the score has parameters per head, heads, L, D]
    count: Tensor  # int64 [1]: how many positions are filled; the caller increments it

    @classmethod
    def of(cls, cache: MultiHeadMemory, count: Tensor, room: int) -> StaticKVCache:
        """Copy a cache that `can_be_static` into buffers with room for `room` positions."""

        def with_room(states: Tensor) -> Tensor:
            buffer = states.new_zeros(*states.shape[:-2], room, states.shape[-1])
            buffer[..., : states.shape[-2], :] = states
            return buffer

        return cls(cache.owner, with_room(cache.memory.key), with_room(cache.memory.value), count)

    def step(self, states: Tensor, products: Products, bias: Tensor | None = None) -> tuple[StaticKVCache, Tensor]:
        """Do what `MultiHeadMemory.step` does, for one state [N, 1, dim] per row."""
        assert bias is None, "a bias depends on the position, which only the device knows"
        owner = self.owner
        query, key, value = owner.project(states, products)
        new = owner.memory_of(key, value, None, 0)
        self.key.index_copy_(-2, self.count, new.key)
        self.value.index_copy_(-2, self.count, new.value)
        keys, values = owner.for_every_head(self.key), owner.for_every_head(self.value)
        visible = torch.arange(keys.shape[-2], device=keys.device) <= self.count  # [L]
        attention = owner.attention
        # All filled positions are visible: `Causal` hides none of them from the last one.
        options = CallOptions(attention.score, Full(), attention.active_normalizer)
        cached = CachedStates(keys, values, None, visible)
        result = run(read_cached(split(query, owner.heads), cached, options))
        return self, products.output(result.context.transpose(-3, -2).flatten(-2))

    def reorder_(self, rows: Tensor) -> None:
        """Replace the rows of the batch by the given ones."""
        for states in (self.key, self.value):
            states.copy_(states.index_select(0, rows))

    def snapshot(self, count: int) -> MultiHeadMemory:
        """Return a copy of the first `count` positions, as an immutable cache."""
        key, value = (states[..., :count, :].clone() for states in (self.key, self.value))
        return MultiHeadMemory(self.owner, Memory(self.owner.attention, key, value, None))


def can_be_static(cache: MultiHeadMemory) -> bool:
    """Return whether a step attends to all earlier positions, in a way that does not depend on its own position."""
    owner = cache.owner
    attention, memory = owner.attention, cache.memory
    plain = not owner.rotary and memory.change is None and memory.lengths is None
    supported = unsupported(attention.score, attention.active_normalizer, attention.active_dropout) is None
    return plain and supported and attention.pattern == Causal()
