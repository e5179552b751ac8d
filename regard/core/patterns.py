"""Patterns: which query may attend to which key.

A pattern is a frozen value. Its one definition is `allows(i, j, size)`: may the query at position i attend to the key
at position j when there are `size` keys? Everything else follows from it:

- `spans(first, last, size)`    keys that some query of first … last − 1 may attend to (possibly a few more);
- `certain(first, last, size)`  keys that every query of first … last − 1 may attend to (possibly a few less);

both listed analytically, in time that grows with their number. Kernels compute the spans, and call `allows` only where
the two differ. `a & b`, `a | b` and `per_head([...])` combine patterns; `str(pattern)` is text that `parse` reads back.

A custom pattern defines `allows`, and is best a frozen dataclass: equal patterns then share what kernels cache.
"""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import torch
from torch import Tensor

from regard.core import spans as runs
from regard.core.checks import broadcast, shape, whole_number
from regard.core.pattern_drawing import draw
from regard.core.spans import Spans


class Pattern(ABC):
    """A sparsity pattern: which query i may attend to which key j."""

    @abstractmethod
    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        """Return bool, of the shape to which the integer tensors i and j broadcast: may query i attend to key j?"""

    def spans(self, first: int, last: int, size: int) -> Spans:
        """Return the keys that some query of first … last − 1 may attend to. A superset is legal."""
        return ((0, size),) if size else ()

    def certain(self, first: int, last: int, size: int) -> Spans:
        """Return the keys that every query of first … last − 1 may attend to. A subset is legal."""
        return ()

    @property
    def heavy_rows(self) -> tuple[int, ...]:
        """Query positions that attend to far more keys than their neighbours; kernels compute them separately."""
        return ()

    @property
    def light(self) -> Pattern:
        """The pattern of all rows but the heavy ones, without these."""
        return self

    @property
    def step(self) -> int:
        """If more than 1: only keys with (i − j) mod step = 0 are ever allowed, so positions fall into classes."""
        return 1

    @property
    def unstrided(self) -> Pattern:
        """The condition that remains once (i − j) mod step = 0 is known."""
        return self

    def mask(self, queries: int, keys: int, position: int = 0, device: torch.device | None = None) -> Tensor:
        """Return the whole pattern as bool [queries, keys] ([heads, queries, keys] for `per_head`)."""
        check_custom(self, queries, keys, position, device)
        i = torch.arange(position, position + queries, device=device)[:, None]
        j = torch.arange(keys, device=device)[None, :]
        return self.allows(i, j, keys)

    def draw(self, queries: int, keys: int | None = None, position: int = 0) -> str:
        """Draw the pattern as text for the terminal, one row per query."""
        return draw(self.mask(queries, queries if keys is None else keys, position))

    def __and__(self, other: Pattern) -> Pattern:
        return _combine(Both, self, other) if isinstance(other, Pattern) else NotImplemented

    def __or__(self, other: Pattern) -> Pattern:
        return _combine(Either, self, other) if isinstance(other, Pattern) else NotImplemented

    def __str__(self) -> str:
        """Return the class with its fields; patterns that `parse` knows are written as it reads them."""
        fields = ", ".join(f"{name}={_short(value)}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, repr=False)
class Full(Pattern):
    """Every query may attend to every key."""

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return torch.ones((), dtype=torch.bool, device=i.device).expand(broadcast(i.shape, j.shape))

    certain = Pattern.spans

    def __str__(self) -> str:
        return "full"


@dataclass(frozen=True, repr=False)
class Causal(Pattern):
    """j ≤ i: a query attends to itself and to earlier keys."""

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return j <= i

    def spans(self, first: int, last: int, size: int) -> Spans:
        return runs.clip([(0, last)], size)

    def certain(self, first: int, last: int, size: int) -> Spans:
        return runs.clip([(0, first + 1)], size)

    def __str__(self) -> str:
        return "causal"


@dataclass(frozen=True, repr=False)
class Window(Pattern):
    """i − before ≤ j ≤ i + after. `Window(n)` is `Window(n, n)`; None is no bound on that side."""

    before: int | None
    after: int | None

    def __init__(self, before: int | None, after: int | str | None = "same") -> None:
        object.__setattr__(self, "before", _side("before", before))
        object.__setattr__(self, "after", _side("after", before if after == "same" else after))  # type: ignore[arg-type]

    @classmethod
    def from_longformer(cls, width: int) -> Window:
        """Return Longformer's `attention_window`, which is the total width: 512 is 256 to each side."""
        if whole_number("Window.from_longformer", "width", width, minimum=2) % 2:
            raise ValueError(f"Window.from_longformer: width: expected an even number, got {width}")
        return cls(width // 2)

    @classmethod
    def from_flash(cls, left: int, right: int) -> Window:
        """Return flash-attn's `window_size=(left, right)`, −1: open. It aligns bottom-right: pass `position=S-T`."""
        sides = [None if side == -1 else side for side in (left, right)]
        return cls(sides[0], sides[1])

    @classmethod
    def from_keras(cls, size: int) -> Window:
        """Return Keras's `sliding_window=n`, which counts the query itself: n − 1 to each side."""
        return cls(whole_number("Window.from_keras", "size", size, minimum=1) - 1)

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        allowed = Full().allows(i, j, size)
        if self.before is not None:
            allowed = allowed & (j >= i - self.before)
        if self.after is not None:
            allowed = allowed & (j <= i + self.after)
        return allowed

    def spans(self, first: int, last: int, size: int) -> Spans:
        return runs.clip([self._span(first, last - 1, size)], size)

    def certain(self, first: int, last: int, size: int) -> Spans:
        return runs.clip([self._span(last - 1, first, size)], size)

    def _span(self, lowest: int, highest: int, size: int) -> tuple[int, int]:
        lo = 0 if self.before is None else lowest - self.before
        hi = size if self.after is None else highest + self.after + 1
        return lo, hi

    def __str__(self) -> str:
        if self.before == self.after:
            return f"window({_number(self.before)})"
        return f"window({_number(self.before)}, {_number(self.after)})"


@dataclass(frozen=True, repr=False)
class Combination(Pattern):
    """Several patterns combined into one."""

    patterns: tuple[Pattern, ...]

    @property
    def heavy_rows(self) -> tuple[int, ...]:
        return tuple(sorted({row for p in self.patterns for row in p.heavy_rows}))

    @property
    def light(self) -> Pattern:
        return type(self)(tuple(p.light for p in self.patterns))


class Both(Combination):
    """The intersection of patterns (`a & b`): what all of them allow."""

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return reduce(torch.logical_and, (p.allows(i, j, size) for p in self.patterns))

    def spans(self, first: int, last: int, size: int) -> Spans:
        return reduce(runs.intersection, (p.spans(first, last, size) for p in self.patterns))

    def certain(self, first: int, last: int, size: int) -> Spans:
        return reduce(runs.intersection, (p.certain(first, last, size) for p in self.patterns))

    @property
    def step(self) -> int:
        return math.lcm(*(p.step for p in self.patterns))

    @property
    def unstrided(self) -> Pattern:
        return reduce(and_, (p.unstrided for p in self.patterns))

    def __str__(self) -> str:
        return " & ".join(f"({p})" if isinstance(p, Either) else str(p) for p in self.patterns)


class Either(Combination):
    """The union of patterns (`a | b`): what at least one of them allows."""

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return reduce(torch.logical_or, (p.allows(i, j, size) for p in self.patterns))

    def spans(self, first: int, last: int, size: int) -> Spans:
        return runs.union(*(p.spans(first, last, size) for p in self.patterns))

    def certain(self, first: int, last: int, size: int) -> Spans:
        return runs.union(*(p.certain(first, last, size) for p in self.patterns))

    @property
    def step(self) -> int:
        return math.gcd(*(p.step for p in self.patterns))

    def __str__(self) -> str:
        return " | ".join(str(p) for p in self.patterns)


@dataclass(frozen=True, repr=False)
class PerHead(Pattern):
    """One pattern for each head. A head is the last leading dimension of query, key and value."""

    patterns: tuple[Pattern, ...]

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        """Return bool [heads, T, S] for i [T, 1] and j [1, S]."""
        return torch.stack([p.allows(i, j, size) for p in self.patterns], dim=-3)

    def __str__(self) -> str:
        return f"per_head({', '.join(str(p) for p in self.patterns)})"


def per_head(patterns: Sequence[Pattern]) -> PerHead:
    """Return a pattern that is the h-th of the given ones for the h-th head."""
    if not isinstance(patterns, Sequence) or not patterns:
        raise ValueError(f"per_head: patterns: expected a list of at least one pattern, got {patterns!r}")
    for pattern in patterns:
        if not isinstance(pattern, Pattern) or isinstance(pattern, PerHead):
            raise TypeError(f"per_head: patterns: expected patterns without per_head inside, got {pattern!r}")
        _check_hashable(pattern)
    return PerHead(tuple(patterns))


def _combine(kind: type[Both] | type[Either], left: Pattern, right: Pattern) -> Pattern:
    """Return left & right or left | right, flattened and without duplicates."""
    if isinstance(left, PerHead) or isinstance(right, PerHead):
        return _combine_heads(kind, left, right)
    parts: list[Pattern] = []
    for pattern in (left, right):
        _check_hashable(pattern)
        parts.extend(pattern.patterns if isinstance(pattern, kind) else [pattern])
    distinct = tuple(dict.fromkeys(parts))
    # Full is the neutral element of &, and absorbs everything under |.
    if kind is Both:
        distinct = tuple(p for p in distinct if p != Full()) or (Full(),)
    elif Full() in distinct:
        distinct = (Full(),)
    return distinct[0] if len(distinct) == 1 else kind(distinct)


def _combine_heads(kind: type[Both] | type[Either], left: Pattern, right: Pattern) -> PerHead:
    heads = [len(p.patterns) for p in (left, right) if isinstance(p, PerHead)]
    if len(set(heads)) > 1:
        raise ValueError(f"per_head: patterns of {heads[0]} and of {heads[1]} heads cannot be combined")
    sides = [p.patterns if isinstance(p, PerHead) else (p,) * heads[0] for p in (left, right)]
    return PerHead(tuple(_combine(kind, a, b) for a, b in zip(*sides, strict=True)))


def check_custom(pattern: Pattern, queries: int, keys: int, position: int, device: torch.device | None) -> None:
    """Raise if a pattern that is not from this package, alone or inside another, cannot be used."""
    if isinstance(pattern, (Combination, PerHead)):
        for inner in pattern.patterns:
            check_custom(inner, queries, keys, position, device)
    elif not type(pattern).__module__.startswith(f"{__package__}."):
        _check_hashable(pattern)
        _check_allows(pattern, queries, keys, position, device)


def _check_allows(pattern: Pattern, queries: int, keys: int, position: int, device: torch.device | None) -> None:
    """Raise TypeError if `allows` does not return what it should for the first few pairs."""
    i = torch.arange(position, position + min(queries, 2), device=device)
    j = torch.arange(min(keys, 3), device=device)
    for lead in ((), (1, 1)):  # kernels check several residue classes and rows of the batch at once
        a, b = i.view(*lead, -1, 1), j.view(*lead, 1, -1)
        allowed, wanted = pattern.allows(a, b, keys), (*lead, len(i), len(j))
        if not isinstance(allowed, Tensor) or allowed.dtype is not torch.bool or allowed.shape != wanted:
            got = f"{allowed.dtype} {shape(allowed)}" if isinstance(allowed, Tensor) else type(allowed).__name__
            raise TypeError(
                f"pattern: {type(pattern).__name__}.allows: expected a bool tensor {shape(wanted)}, to which "
                f"i {shape(a)} and j {shape(b)} broadcast, got {got}"
            )


def _check_hashable(pattern: object) -> None:
    """Raise TypeError if a pattern cannot be the key of a cache."""
    try:
        hash(pattern)
    except TypeError as reason:
        kind = type(pattern).__name__
        raise TypeError(f"pattern: expected {kind} to be hashable, as a frozen dataclass is, got {reason}") from None


def _short(value: object) -> str:
    return f"tensor {shape(value)}" if isinstance(value, Tensor) else reprlib.repr(value)


def _side(name: str, value: int | None) -> int | None:
    return None if value is None else whole_number("Window", name, value)


def _number(value: int | None) -> str:
    return "none" if value is None else str(value)
