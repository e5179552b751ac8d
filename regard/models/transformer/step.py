"""One decoding step of a Transformer, and its state in search: of hypotheses before their next token.

Weights are packed once for all steps, and keys and values are stored in float32, in which attention computes, so that a
step casts only the new token's. k hypotheses of B sentences, D features, H heads, S source positions, t target
positions so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.core.kernels.few_queries import MAX_QUERIES
from regard.core.memory import Memory
from regard.core.multihead import MultiHeadMemory, Products
from regard.core.patterns import Full
from regard.core.static_cache import StaticKVCache, can_be_static
from regard.models.transformer.layers import DecoderBlock
from regard.models.transformer.positions import SINUSOID_POSITIONS
from regard.runtime.packed_product import PackedProduct

SelfAttentionCache = MultiHeadMemory | StaticKVCache


@dataclass(frozen=True)
class TransformerState:
    """The state of k unfinished hypotheses of each of B sentences. It is immutable: a step returns a new one."""

    caches: tuple[SelfAttentionCache, ...]
    """the KV cache of self-attention of each layer: keys [B · k, H, t, D / H]"""
    memory: tuple[MultiHeadMemory, ...]
    """the KV cache of cross-attention of each layer: keys [B, H, S, D / H], which all hypotheses share"""
    packed: TransformerSteps
    hypotheses: int = 1
    """k"""
    position: int = 0

    def select(self, parents: Tensor) -> TransformerState:
        """Return the state of the hypotheses `parents` [B, k'] of each sentence, in the given order."""
        if self.hypotheses == 1 and parents.shape[1] == 1:
            return self
        caches = tuple(each.select(self.rows(parents)) for each in self._growing_caches)
        return replace(self, caches=caches, hypotheses=parents.shape[1])

    def rows(self, parents: Tensor) -> Tensor:
        """Return the rows of the caches [B · k, …] that belong to the hypotheses [B, k']."""
        first = torch.arange(len(parents), device=parents.device)[:, None] * self.hypotheses
        return (first + parents).flatten()

    def keep(self, sentences: Tensor) -> TransformerState:
        """Return the state of the given sentences [B'] alone, in the given order."""
        slots = torch.arange(self.hypotheses, device=sentences.device)
        rows = (sentences[:, None] * self.hypotheses + slots).flatten()
        caches = tuple(each.select(rows) for each in self._growing_caches)
        return replace(self, caches=caches, memory=tuple(each.select(sentences) for each in self.memory))

    @property
    def memories(self) -> tuple[Memory, ...]:
        """The keys and values of the source that the cross-attention of each layer reads."""
        return tuple(each.memory for each in self.memory)

    def with_memories(self, memories: Sequence[Memory]) -> TransformerState:
        """Return a state whose layers read other memories of the source."""
        pairs = zip(self.memory, memories, strict=True)
        return replace(self, memory=tuple(replace(each, memory=memory) for each, memory in pairs))

    def changed(self, change: Callable[[Tensor], Tensor]) -> TransformerState:
        """Return a state in which `change` is applied to all cross-attention weights before they are used."""
        return self.with_memories([memory.changed(change) for memory in self.memories])

    def static(self, steps: int) -> TransformerStaticState | None:
        """Return a copy in static buffers with room for so many further steps; None if that is impossible."""
        caches = self._growing_caches
        fixed_shapes = all(map(can_be_static, caches)) and all(each.memory.ignores_position for each in self.memory)
        few = self.hypotheses <= MAX_QUERIES  # more are read by other kernels, which may synchronize
        if not (fixed_shapes and few) or self.packed.biased or self.position + steps > SINUSOID_POSITIONS:
            return None
        count = torch.full((1,), self.position, device=self.memory[0].memory.key.device)
        static = tuple(StaticKVCache.of(each, count, self.position + steps) for each in caches)
        return TransformerStaticState(replace(self, caches=static))

    @property
    def next_position(self) -> int | Tensor:
        """The position of the next token; of a static state a tensor [1] on the device."""
        cache = self.caches[0]
        return cache.count if isinstance(cache, StaticKVCache) else self.position

    @property
    def _growing_caches(self) -> list[MultiHeadMemory]:
        """The caches, which must not be static."""
        assert not any(isinstance(each, StaticKVCache) for each in self.caches)
        return list(self.caches)  # type: ignore[arg-type]


@dataclass(frozen=True)
class TransformerStaticState:
    """A state whose KV caches are static buffers, which a CUDA graph updates in place."""

    state: TransformerState

    def update_(self, after: TransformerState, parents: Tensor) -> None:
        """Reorder the caches by the hypotheses [B, k] that the next step continues, and move on by one position."""
        if self.state.hypotheses > 1:
            rows = self.state.rows(parents)
            for each in self.state.caches:
                assert isinstance(each, StaticKVCache)
                each.reorder_(rows)
        assert isinstance(self.state.next_position, Tensor)
        self.state.next_position.add_(1)  # one tensor, which the caches of all layers share

    def snapshot(self, steps: int) -> TransformerState:
        """Return a copy of the state after so many steps, which later replays do not change."""
        position = self.state.position + steps
        caches = tuple(each.snapshot(position) for each in self.state.caches if isinstance(each, StaticKVCache))
        return replace(self.state, caches=caches, position=position)


class TransformerSteps:
    """The decoder's blocks and output layer with packed weights, for many steps without gradients."""

    def __init__(self, blocks: Iterable[DecoderBlock], output: nn.Linear, biased: bool) -> None:
        self.blocks = tuple(map(BlockSteps, blocks))
        self.biased = biased  # whether a bias that depends on the position (ALiBi) is added to the energies
        self.output = PackedProduct.of(output)  # the projection to the vocabulary


class BlockSteps:
    """A decoder block with packed weights."""

    def __init__(self, block: DecoderBlock) -> None:
        self._block = block
        self._self_products = Products.for_self_attention(block.attend)
        self._cross_products = Products.for_cross_attention(block.cross)
        self._feed_forward: Callable[[Tensor], Tensor] = block.feed_forward.packed()

    def __call__(
        self, states: Tensor, cache: SelfAttentionCache, source: MultiHeadMemory,
        hypotheses: int, position: int, bias: Tensor | None,
    ) -> tuple[Tensor, SelfAttentionCache, Tensor]:  # fmt: skip
        """Map states [B · k, 1, D] to (the same shape, the cache with this token, source weights [B, k, H, S])."""
        block = self._block
        new_cache, weights = cache, states

        def self_attention(x: Tensor) -> Tensor:
            nonlocal new_cache
            new_cache, context = cache.step(x, self._self_products, bias)
            return context

        def cross_attention(x: Tensor) -> Tensor:
            nonlocal weights
            context, weights = self._read(source, x.view(-1, hypotheses, x.shape[-1]), position)
            return context.view(x.shape)

        states = block.around_attend(states, self_attention)
        states = block.around_cross(states, cross_attention)
        states = block.around_feed_forward(states, self._feed_forward)
        return states, new_cache, weights

    def _read(self, source: MultiHeadMemory, query: Tensor, position: int) -> tuple[Tensor, Tensor]:
        """Let queries [B, k, D] attend to the source; return context [B, k, D] and weights [B, k, H, S]."""
        if source.owner.attention.pattern == Full():  # of any position, so the hypotheses can be queries of one read
            result = source.read(query, weights=True, products=self._cross_products)
            assert result.weights is not None
            return result.context, result.weights.transpose(1, 2)
        results = [
            source.read(query[:, slot, None], position=position, weights=True, products=self._cross_products)
            for slot in range(query.shape[1])
        ]
        weights = [each.weights[:, :, 0] for each in results if each.weights is not None]
        return torch.cat([each.context for each in results], 1), torch.stack(weights, 1)
