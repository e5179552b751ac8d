"""What every search needs of a model, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from torch import Tensor

from regard.text.vocabulary import END


class State(Protocol):
    """k hypotheses of B sentences, in mid-translation."""

    def select(self, parents: Tensor) -> Self:
        """The hypotheses [B, k'] of each sentence, in the given order."""

    def keep(self, sentences: Tensor) -> Self:
        """Only these sentences [B'], in the given order."""

    def held(self, steps: int) -> Held | None:
        """The same for so many steps that a GPU plays back; None: it could not."""


class Held(Protocol):
    """A state whose tensors keep their places."""

    @property
    def state(self) -> Any: ...

    def hold(self, after: Any, parents: Tensor) -> None:
        """What the state is after a step, of the hypotheses [B, k]."""

    def released(self, steps: int) -> Any:
        """As it is after so many steps."""


class Translating(Protocol):
    """A model as search sees it."""

    def start(self, source: Tensor, lengths: Tensor) -> Any:
        """source [B, S] of `lengths` [B] → one hypothesis a sentence, before its first token."""

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Any]:
        """The last tokens [B, k] → (logits [B, k, V], weights [B, k, layers, heads, S], the next state)."""

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        """What else looks, for target [B, T] from the start token on: "encoder", "decoder" [B, layers, heads, …]."""


@dataclass(frozen=True)
class Hypothesis:
    """One translation."""

    tokens: list[int]
    """without start and end"""
    log_probability: float
    """Σ log p of all tokens, the end token too if it was reached"""
    score: float
    """what hypotheses are ranked by: higher is better"""
    finished: bool
    """whether the end token was reached before the longest length allowed"""
    weights: np.ndarray[Any, np.dtype[np.float32]]
    """[layers, heads, steps, S]: what each step looked at; the last one is the end token's, if it was reached"""

    @property
    def said(self) -> list[int]:
        """the tokens, with the end token if it was reached"""
        return [*self.tokens, END] if self.finished else self.tokens


@dataclass(frozen=True)
class Length:
    """How long an output may be for a source of n tokens: at least `least`, at most ratio · n + margin tokens, the end
    token counted; one that has not ended by then is cut off. Learned from the training pairs."""

    ratio: float
    margin: float
    least: int = 0
    most: int = 1000

    def cap(self, source: int) -> int:
        return max(1, self.least, min(self.most, int(self.ratio * source + self.margin)))

    @classmethod
    def learned(cls, pairs: list[tuple[int, int]]) -> Length:
        """From (source, target) lengths: a line above nearly all of them, and a fifth on top."""
        source, target = np.array(pairs, dtype=np.float64).T
        ratio = float(np.quantile(target / np.maximum(source, 1), 0.95))
        margin = float(np.quantile(target - ratio * source, 0.999))
        return cls(round(1.2 * ratio, 3), round(1.2 * max(margin, 0) + 3, 3))
