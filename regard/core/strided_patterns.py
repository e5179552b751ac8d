"""Patterns in which (i − j) mod step = 0, so that positions fall into residue classes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from regard.core.checks import whole_number
from regard.core.patterns import Full, Pattern, Window
from regard.core.spans import Spans


@dataclass(frozen=True, repr=False)
class Strided(Pattern):
    """(i − j) mod every = 0: every `every`-th key, counted from the query, to both sides."""

    every: int

    def __post_init__(self) -> None:
        whole_number("Strided", "every", self.every, minimum=1)

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return (i - j) % self.every == 0

    @property
    def step(self) -> int:
        return self.every

    @property
    def unstrided(self) -> Pattern:
        return Full()

    def __str__(self) -> str:
        return f"strided({self.every})"


@dataclass(frozen=True, repr=False)
class Dilated(Pattern):
    """|i − j| ≤ reach·gap and (i − j) mod gap = 0: a window with holes, `reach` keys to each side."""

    reach: int
    gap: int

    def __post_init__(self) -> None:
        whole_number("Dilated", "reach", self.reach)
        whole_number("Dilated", "gap", self.gap, minimum=1)

    @property
    def unstrided(self) -> Window:
        """The window without its holes."""
        return Window(self.reach * self.gap)

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return self.unstrided.allows(i, j, size) & ((i - j) % self.gap == 0)

    def spans(self, first: int, last: int, size: int) -> Spans:
        return self.unstrided.spans(first, last, size)

    @property
    def step(self) -> int:
        return self.gap

    def __str__(self) -> str:
        return f"dilated({self.reach}, {self.gap})"
