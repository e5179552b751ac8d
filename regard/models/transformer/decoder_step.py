"""One decoding step of a Transformer, for search.

Weights are packed once for all steps, and keys and values are stored in float32, in which attention computes, so that a
step casts only the new token's. k hypotheses of B sentences, D features, H heads, S source positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from regard.core.multihead import MultiHeadMemory, Products
from regard.core.patterns import Full
from regard.core.static_cache import StaticKVCache
from regard.models.transformer.layers import DecoderBlock
from regard.runtime.packed_product import PackedProduct

SelfAttentionCache = MultiHeadMemory | StaticKVCache


class TransformerSteps:
    """The decoder's blocks and output layer with packed weights, for many steps without gradients."""

    def __init__(self, blocks: Iterable[DecoderBlock], output: nn.Linear, biased: bool) -> None:
        self.blocks = tuple(map(BlockSteps, blocks))
        self.biased = biased
        """whether a bias that depends on the position (ALiBi) is added to the energies"""
        self.output = PackedProduct.of(output)
        """the projection to the vocabulary"""


class BlockSteps:
    """A decoder block with packed weights."""

    def __init__(self, block: DecoderBlock) -> None:
        self._block = block
        self._self_products = Products.for_self_attention(block.attend)
        self._cross_products = Products.for_cross_attention(block.cross)
        self._feed_forward: Callable[[Tensor], Tensor] = block.feed_forward.packed()

    def __call__(
        self,
        states: Tensor,
        cache: SelfAttentionCache,
        source: MultiHeadMemory,
        hypotheses: int,
        position: int,
        bias: Tensor | None,
    ) -> tuple[Tensor, SelfAttentionCache, Tensor]:
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
