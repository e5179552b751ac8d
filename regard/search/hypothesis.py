"""What every search needs of a model, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from regard.text.vocabulary import END

Prefixes = Sequence[Sequence[int]] | None  # of each sentence, the tokens with which its output must begin


class DecoderModel(Protocol):
    """A model as search sees it."""

    def start(self, source: Tensor, lengths: Tensor) -> Any:
        """Return the state of one empty hypothesis per sentence, for source [B, S] of `lengths` [B].

        A state is never changed: a step returns a new one. `select(parents [B, k'])` and `keep(sentences [B'])` return
        the state of some of its hypotheses or sentences. `static(steps)` returns a copy in static buffers with room for
        so many steps, which a CUDA graph updates in place (`state`, `update_`, `snapshot`), or None.
        """

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Return (logits [B, k, V], weights [B, k, layers, heads, S], the next state) after the last tokens [B, k]."""

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the self-attention for target [B, T], which begins with the start token: "encoder", "decoder"
        [B, layers, heads, …]."""


@dataclass(frozen=True)
class Hypothesis:
    """One translation."""

    tokens: list[int]  # without start and end
    log_probability: float  # Σ log p of all tokens, the end token too if it was reached
    score: float  # what hypotheses are ranked by: higher is better
    finished: bool  # whether the end token was reached before the maximum length
    weights: np.ndarray[Any, np.dtype[np.float32]]  # [layers, heads, steps, S]; the last step is END's if finished

    @property
    def output_tokens(self) -> list[int]:
        """the tokens, with the end token if it was reached"""
        return [*self.tokens, END] if self.finished else self.tokens


@dataclass(frozen=True)
class LengthLimit:
    """How long an output may be for a source of n tokens: at least `shortest`, at most ratio · n + margin tokens, the
    end token counted; one that has not ended by then is cut off. Learned from the training pairs."""

    ratio: float
    margin: float
    shortest: int = 0
    longest: int = 1000

    def max_length(self, source: int) -> int:
        """Return the maximum length for a source of so many tokens."""
        return max(1, self.shortest, min(self.longest, int(self.ratio * source + self.margin)))

    def max_lengths(self, sources: list[int], prefixes: Prefixes) -> np.ndarray:
        """Return the maximum lengths for sources of these lengths, each with room for its prefix and one more token."""
        needed = [0] * len(sources) if prefixes is None else [len(prefix) + 1 for prefix in prefixes]
        return np.maximum([self.max_length(length) for length in sources], needed)

    @classmethod
    def from_card(cls, card: dict[str, Any]) -> LengthLimit:
        """Return the limit that a model's card has."""
        try:
            return cls(float(card["length"]["ratio"]), float(card["length"]["margin"]))
        except (KeyError, TypeError, ValueError):
            raise ValueError("card.json: damaged: expected `length` with ratio and margin") from None

    def covering(self, other: LengthLimit) -> LengthLimit:
        """Return the limit that allows what this one or the other allows."""
        return LengthLimit(max(self.ratio, other.ratio), max(self.margin, other.margin))

    @classmethod
    def learned(cls, pairs: list[tuple[int, int]]) -> LengthLimit:
        """Fit (source, target) lengths: a line above nearly all of them, and a fifth on top."""
        source, target = np.array(pairs, dtype=np.float64).T
        ratio = float(np.quantile(target / np.maximum(source, 1), 0.95))
        margin = float(np.quantile(target - ratio * source, 0.999))
        return cls(round(1.2 * ratio, 3), round(1.2 * max(margin, 0) + 3, 3))
