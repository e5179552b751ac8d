"""The blocks of a Transformer: attention and a feed-forward network, each added to what came in.

    pre     x ← x + part(norm(x))        learns from the first step on, the default (Xiong et al. 2020)
    post    x ← norm(x + part(x))        as in the paper (Vaswani et al. 2017)
    feed-forward(x) = W₂ f(W₁ x + b₁) + b₂

B sentences, N positions, D features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from regard.core.checks import choices, share, whole_number
from regard.core.multihead import MultiHead, MultiHeadMemory
from regard.core.pattern_text import parse
from regard.core.patterns import Causal, Full
from regard.core.result import Result
from regard.models.dropout import Dropout
from regard.runtime.packed_product import Product


@dataclass(frozen=True)
class Looking:
    """How one attention of a Transformer looks."""

    score: Literal["scaled_dot", "dot", "cosine", "general", "additive"] = "scaled_dot"
    pattern: str = "full"
    """as text, one for each head if wanted: `per_head(window(8), window(8), strided(4), full)`"""
    normalizer: Literal["softmax", "sparsemax", "entmax15", "hard"] = "softmax"
    kv_heads: int | None = None
    """fewer keys and values than heads; None: as many"""

    def __post_init__(self) -> None:
        if self.kv_heads is not None:
            whole_number("attention", "kv_heads", self.kv_heads, least=1)
        choices("attention", self)
        parse(self.pattern)


@dataclass(frozen=True)
class Shape:
    """What all blocks of a model share."""

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
            whole_number("model", name, getattr(self, name), least=1)
        share("model.dropout", self.dropout)
        share("model.attention_dropout", self.attention_dropout)

    def attention(self, looking: Looking, causal: bool = False, rotary: bool = False) -> MultiHead:
        pattern = parse(looking.pattern)
        if causal:
            pattern = Causal() if pattern == Full() else pattern & Causal()
        return MultiHead(
            self.width,
            self.heads,
            kv_heads=looking.kv_heads,
            score=looking.score,
            pattern=pattern,
            normalizer=looking.normalizer,
            dropout=self.attention_dropout,
            rotary=rotary,
        )


class FeedForward(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.inner = nn.Linear(shape.width, shape.feedforward)
        self.outer = nn.Linear(shape.feedforward, shape.width)
        self.dropout = Dropout(shape.dropout)
        self._activation = functional.relu if shape.activation == "relu" else functional.gelu

    def forward(self, states: Tensor) -> Tensor:
        found: Tensor = self.outer(self.dropout(self._activation(self.inner(states))))
        return found

    def ready(self) -> Callable[[Tensor], Tensor]:
        """The same for many steps without gradients or dropout."""
        rectified = self._activation is functional.relu
        inner, outer = Product.of(self.inner, relu=rectified), Product.of(self.outer)
        if rectified:
            return lambda states: outer(inner(states))
        return lambda states: outer(self._activation(inner(states)))


class Residual(nn.Module):
    """What a part of a block makes, added to what came in; normalized before or after."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape.width)
        self.dropout = Dropout(shape.dropout)
        self._before = shape.norm == "pre"

    def forward(self, states: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
        if self._before:
            after: Tensor = states + self.dropout(part(self.norm(states)))
        else:
            after = self.norm(states + self.dropout(part(states)))
        return after


class EncoderBlock(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, shape: Shape, looking: Looking, causal: bool = False) -> None:
        super().__init__()
        self.attend = shape.attention(looking, causal, shape.rotary)
        self.forth = FeedForward(shape)
        self.around_attend, self.around_forth = Residual(shape), Residual(shape)

    def forward(
        self,
        states: Tensor,
        lengths: Tensor | None = None,
        bias: Tensor | None = None,
        seen: list[Tensor] | None = None,
    ) -> Tensor:
        """states [B, N, D] of `lengths` [B] → the same shape. Weights [B, heads, N, N] go into `seen`, if given."""

        def look(x: Tensor) -> Tensor:
            return noted(self.attend(x, lengths=lengths, bias=bias, weights=seen is not None), seen)

        after: Tensor = self.around_forth(self.around_attend(states, look), self.forth)
        return after


class DecoderBlock(nn.Module):
    """Self-attention to what was said, attention to the source, then the feed-forward network."""

    def __init__(self, shape: Shape, looking: Looking, cross: Looking) -> None:
        super().__init__()
        self.attend = shape.attention(looking, causal=True, rotary=shape.rotary)
        self.cross = shape.attention(cross)
        self.forth = FeedForward(shape)
        self.around_attend, self.around_cross, self.around_forth = (Residual(shape) for _ in range(3))

    def forward(
        self,
        states: Tensor,
        source: MultiHeadMemory,
        bias: Tensor | None = None,
        own: list[Tensor] | None = None,
        seen: list[Tensor] | None = None,
    ) -> Tensor:
        """states [B, T, D] → the same shape. Weights go into `own` [B, heads, T, T] and `seen` [B, heads, T, S]."""

        def look_back(x: Tensor) -> Tensor:
            return noted(self.attend(x, bias=bias, weights=own is not None), own)

        def look_over(x: Tensor) -> Tensor:
            return noted(source.read(x, weights=seen is not None), seen)

        states = self.around_attend(states, look_back)
        states = self.around_cross(states, look_over)
        after: Tensor = self.around_forth(states, self.forth)
        return after


def noted(result: Result, seen: list[Tensor] | None) -> Tensor:
    """The context; the weights are put down, if somebody asks for them."""
    if seen is not None:
        assert result.weights is not None
        seen.append(result.weights)
    return result.context
