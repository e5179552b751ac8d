"""A memory that grows in its place: for steps that a GPU plays back, which must find everything where it was.

N rows of the batch, L positions there is room for, H heads of D features.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core import single
from regard.core.memory import Memory
from regard.core.multihead import MultiHead, MultiHeadMemory, Products, split
from regard.core.patterns import Causal
from regard.core.scores import wide


@dataclass(frozen=True)
class HeldMemory:
    """What a decoder has said. `step` and `reorder` change it."""

    owner: MultiHead
    key: Tensor
    value: Tensor
    """[N, kv_heads or, where the score has parameters per head, heads, L, D]"""
    count: Tensor
    """int64 [1]: how many positions there are; whoever makes it counts on"""

    @classmethod
    def of(cls, said: MultiHeadMemory, count: Tensor, room: int) -> HeldMemory:
        """With room for so many positions. The memory must be `holdable`."""

        def held(states: Tensor) -> Tensor:
            wider = states.new_zeros(*states.shape[:-2], room, states.shape[-1])
            wider[..., : states.shape[-2], :] = states
            return wider

        return cls(said.owner, held(said.memory.key), held(said.memory.value), count)

    def step(self, states: Tensor, products: Products, bias: Tensor | None = None) -> tuple[HeldMemory, Tensor]:
        """As `MultiHeadMemory.step` by one state [N, 1, dim] a row."""
        assert bias is None, "it would have to know where it stands"
        owner = self.owner
        features = (owner.query.out_features, owner.key.out_features, owner.value.out_features)
        query, key, value = wide(products.asked(states)).split(features, -1)
        new = owner.kept(key, value, None, 0)
        self.key.index_copy_(-2, self.count, new.key)
        self.value.index_copy_(-2, self.count, new.value)
        keys, values = owner.for_every_head(self.key), owner.for_every_head(self.value)
        ahead = torch.arange(keys.shape[-2], device=keys.device)[None] > self.count  # [1, L]
        attention = owner.attention
        seen = single.read(
            split(query, owner.heads), keys, values, attention.score, attention.active_normalizer, ahead, None
        )
        return self, products.answered(seen.context.transpose(-3, -2).flatten(-2))

    def reorder(self, rows: Tensor) -> None:
        for states in (self.key, self.value):
            states.copy_(states.index_select(0, rows))

    def released(self, count: int) -> MultiHeadMemory:
        """As it is with so many positions, never changed again."""
        key, value = (states[..., :count, :].clone() for states in (self.key, self.value))
        return MultiHeadMemory(self.owner, Memory(self.owner.attention, key, value, None))


def holdable(said: MultiHeadMemory) -> bool:
    """Does a step look at all that was said, and is where it stands nothing to attention itself?"""
    owner = said.owner
    attention, memory = owner.attention, said.memory
    plain = not owner.rotary and memory.change is None and memory.lengths is None
    fits = single.suits(attention.score, attention.active_normalizer, True, attention.active_dropout)
    return plain and fits and attention.pattern == Causal()
