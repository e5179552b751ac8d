"""The blocks of a Transformer: attention and a feed-forward network, each with a residual connection.

    pre     x ← x + sublayer(norm(x))    the default: trains stably from the first step on (Xiong et al. 2020)
    post    x ← norm(x + sublayer(x))    as in the paper (Vaswani et al. 2017)
    feed-forward(x) = W₂ f(W₁ x + b₁) + b₂

B sentences, N positions, D features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from regard.core.checks import choices, fraction, whole_number
from regard.core.multihead import MultiHead, MultiHeadMemory
from regard.core.pattern_text import parse
from regard.core.patterns import Causal, Full
from regard.core.result import Result
from regard.models.dropout import Dropout
from regard.runtime.packed_product import PackedProduct

WeightsOut = list[Tensor] | None
"""a list to which attention weights are appended, of one layer after the other; None: they are not computed"""


@dataclass(frozen=True)
class AttentionOptions:
    """The options of one kind of attention of a Transformer (encoder, decoder or cross-attention)."""

    score: Literal["scaled_dot", "dot", "cosine", "general", "additive"] = "scaled_dot"
    pattern: str = "full"
    """as text; a pattern for each head is possible: `per_head(window(8), window(8), strided(4), full)`"""
    normalizer: Literal["softmax", "sparsemax", "entmax15", "hard"] = "softmax"
    kv_heads: int | None = None
    """number of key and value heads, a divisor of the heads (grouped-query attention); None: as many as heads"""

    def __post_init__(self) -> None:
        if self.kv_heads is not None:
            whole_number("attention", "kv_heads", self.kv_heads, minimum=1)
        choices("attention", self)
        parse(self.pattern)

    @property
    def is_standard(self) -> bool:
        """Is it the softmax of scaled dot products over all keys, which never synchronizes with the host?"""
        return (self.score, self.pattern, self.normalizer) == ("scaled_dot", "full", "softmax")


@dataclass(frozen=True)
class Shape:
    """The sizes and options that all blocks of a model share."""

    width: int
    heads: int
    feedforward: int
    norm: Literal["pre", "post"] = "pre"
    activation: Literal["relu", "gelu"] = "relu"
    rotary: bool = False
    dropout: float = 0.1
    attention_dropout: float = 0.0

    def __post_init__(self) -> None:
        for name in ("width", "heads", "feedforward"):
            whole_number("model", name, getattr(self, name), minimum=1)
        fraction("model.dropout", self.dropout)
        fraction("model.attention_dropout", self.attention_dropout)

    def attention(self, options: AttentionOptions, causal: bool = False, rotary: bool = False) -> MultiHead:
        """Return a multi-head attention; `causal` restricts its pattern to earlier positions."""
        pattern = parse(options.pattern)
        if causal:
            pattern = Causal() if pattern == Full() else pattern & Causal()
        return MultiHead(
            self.width, self.heads, kv_heads=options.kv_heads, score=options.score, pattern=pattern,
            normalizer=options.normalizer, dropout=self.attention_dropout, rotary=rotary,
        )  # fmt: skip


class FeedForward(nn.Module):
    """W₂ f(W₁ x + b₁) + b₂ at every position, with dropout between."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.inner = nn.Linear(shape.width, shape.feedforward)
        self.outer = nn.Linear(shape.feedforward, shape.width)
        self.dropout = Dropout(shape.dropout)
        self._activation = functional.relu if shape.activation == "relu" else functional.gelu

    def forward(self, states: Tensor) -> Tensor:
        output: Tensor = self.outer(self.dropout(self._activation(self.inner(states))))
        return output

    def packed(self) -> Callable[[Tensor], Tensor]:
        """Return the same function with packed weights, for many steps without gradients or dropout."""
        relu = self._activation is functional.relu
        inner, outer = PackedProduct.of(self.inner, relu=relu), PackedProduct.of(self.outer)
        if relu:
            return lambda states: outer(inner(states))
        return lambda states: outer(self._activation(inner(states)))


class Residual(nn.Module):
    """A residual connection around a sublayer, with layer normalization before or after it."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape.width)
        self.dropout = Dropout(shape.dropout)
        self._pre_norm = shape.norm == "pre"

    def forward(self, states: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self._pre_norm:
            output: Tensor = states + self.dropout(sublayer(self.norm(states)))
        else:
            output = self.norm(states + self.dropout(sublayer(states)))
        return output


class EncoderBlock(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, shape: Shape, options: AttentionOptions, causal: bool = False) -> None:
        super().__init__()
        self.attend = shape.attention(options, causal, shape.rotary)
        self.feed_forward = FeedForward(shape)
        self.around_attend, self.around_feed_forward = Residual(shape), Residual(shape)

    def forward(
        self, states: Tensor, lengths: Tensor | None = None, bias: Tensor | None = None, weights_out: WeightsOut = None
    ) -> Tensor:
        """Map states [B, N, D] of `lengths` [B] to the same shape; attention weights are [B, heads, N, N]."""

        def self_attention(x: Tensor) -> Tensor:
            result = self.attend(x, lengths=lengths, bias=bias, weights=weights_out is not None)
            return _collect_weights(result, weights_out)

        output: Tensor = self.around_feed_forward(self.around_attend(states, self_attention), self.feed_forward)
        return output


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to the source, then the feed-forward network."""

    def __init__(self, shape: Shape, options: AttentionOptions, cross: AttentionOptions) -> None:
        super().__init__()
        self.attend = shape.attention(options, causal=True, rotary=shape.rotary)
        self.cross = shape.attention(cross)
        self.feed_forward = FeedForward(shape)
        self.around_attend, self.around_cross, self.around_feed_forward = (Residual(shape) for _ in range(3))

    def forward(
        self, states: Tensor, source: MultiHeadMemory, bias: Tensor | None = None,
        self_weights_out: WeightsOut = None, cross_weights_out: WeightsOut = None,
    ) -> Tensor:  # fmt: skip
        """Map states [B, T, D] to the same shape; weights are [B, heads, T, T] and [B, heads, T, S]."""

        def self_attention(x: Tensor) -> Tensor:
            return _collect_weights(self.attend(x, bias=bias, weights=self_weights_out is not None), self_weights_out)

        def cross_attention(x: Tensor) -> Tensor:
            return _collect_weights(source.read(x, weights=cross_weights_out is not None), cross_weights_out)

        states = self.around_attend(states, self_attention)
        states = self.around_cross(states, cross_attention)
        output: Tensor = self.around_feed_forward(states, self.feed_forward)
        return output


def _collect_weights(result: Result, weights_out: WeightsOut) -> Tensor:
    """Return the context of an attention; append its weights to `weights_out`, if given."""
    if weights_out is not None:
        assert result.weights is not None
        weights_out.append(result.weights)
    return result.context
