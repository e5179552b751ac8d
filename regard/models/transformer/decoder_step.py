"""A Transformer's decoder, one token further.

What a step multiplies by is laid out once for all of them, and what it looks at is kept in float32, in which attention
computes: a step casts only what is new. k hypotheses of B sentences, D features, H heads, S source positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from regard.core.multihead import MultiHeadMemory, Products
from regard.core.patterns import Full
from regard.core.static_cache import HeldMemory
from regard.models.transformer.layers import DecoderBlock
from regard.runtime.packed_product import Product

SelfAttentionCache = MultiHeadMemory | HeldMemory


class Steps:
    """What a decoder does at every step, ready for many of them."""

    def __init__(self, blocks: Iterable[DecoderBlock], output: nn.Linear, biased: bool) -> None:
        self.blocks = tuple(map(BlockSteps, blocks))
        self.biased = biased
        """by where a token stands"""
        self.output = Product.of(output)
        """to the vocabulary"""


class BlockSteps:
    """One block of it."""

    def __init__(self, block: DecoderBlock) -> None:
        self._block = block
        self._back, self._over = Products.growing(block.attend), Products.reading(block.cross)
        self._forth: Callable[[Tensor], Tensor] = block.forth.ready()

    def __call__(
        self,
        states: Tensor,
        cache: SelfAttentionCache,
        source: MultiHeadMemory,
        hypotheses: int,
        position: int,
        bias: Tensor | None,
    ) -> tuple[Tensor, SelfAttentionCache, Tensor]:
        """states [B · k, 1, D] → (the same shape, the cache with this token, weights [B, k, H, S])"""
        block = self._block
        longer, seen = cache, states

        def look_back(x: Tensor) -> Tensor:
            nonlocal longer
            longer, context = cache.step(x, self._back, bias)
            return context

        def look_over(x: Tensor) -> Tensor:
            nonlocal seen
            context, seen = self._read(source, x.view(-1, hypotheses, x.shape[-1]), position)
            return context.view(x.shape)

        states = block.around_attend(states, look_back)
        states = block.around_cross(states, look_over)
        states = block.around_forth(states, self._forth)
        return states, longer, seen

    def _read(self, source: MultiHeadMemory, query: Tensor, position: int) -> tuple[Tensor, Tensor]:
        """query [B, k, D] → context [B, k, D], weights [B, k, H, S]"""
        if source.owner.attention.pattern == Full():  # wherever they stand: the hypotheses read as one
            result = source.read(query, weights=True, products=self._over)
            assert result.weights is not None
            return result.context, result.weights.transpose(1, 2)
        results = [
            source.read(query[:, slot, None], position=position, weights=True, products=self._over)
            for slot in range(query.shape[1])
        ]
        weights = [each.weights[:, :, 0] for each in results if each.weights is not None]
        return torch.cat([each.context for each in results], 1), torch.stack(weights, 1)
