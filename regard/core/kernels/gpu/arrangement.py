"""Strides and dilations for kernels that work along blocks: positions sorted by residue class.

A term of a pattern with a step allows only pairs of positions of the same class mod step. With class 0 first (0, step,
2·step, …), then class 1 and so on, its pairs lie in blocks along the diagonal: a stride is full attention there, a
dilation a window. Terms without a step keep the order of positions. Each term excludes the pairs of the terms before it
(parts.py). A *place* is an index in the sorted order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from regard.core import spans as runs
from regard.core.kernels.cpu.parts import PatternTerm, columns_of, layout_of
from regard.core.kernels.flat import FlatRows
from regard.core.kernels.residues import regroup, ungroup
from regard.core.patterns import Pattern
from regard.core.spans import Span, Spans


@dataclass(frozen=True)
class Arrangement:
    """One term, and the order of its queries and keys."""

    pattern: Pattern  # the pattern of places, i.e. of indices in that order
    step: int
    first: int  # the position of the first query
    queries: int
    keys: int  # the number of keys

    @property
    def position(self) -> int:
        """The place of the first query in that order."""
        return self.first if self.step == 1 else 0

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of queries and keys in that order, with the padding of the classes."""
        queries, keys = -(-(self._offset + self.queries) // self.step), -(-self.keys // self.step)  # of a class
        return queries * self.step, keys * self.step

    @property
    def _offset(self) -> int:
        """The residue class of the first query; classes below it have one member of padding in front."""
        return self.first % self.step

    def query_order(self, states: Tensor, fill: float = 0.0) -> Tensor:
        """Sort states of queries, [G, T, …] → [G, T', …]; the padding of the classes is `fill`."""
        return _sorted(states, self.step, self._offset, fill)

    def key_order(self, states: Tensor) -> Tensor:
        """Sort states of keys, [G, S, …] → [G, S', …]."""
        return _sorted(states, self.step, 0)

    def visible_order(self, visible: FlatRows | None) -> FlatRows | None:
        return None if visible is None else FlatRows(self.key_order(visible.tensor), visible.index)

    def as_queries(self, states: Tensor) -> Tensor:
        """Undo `query_order`, [G, T', …] → [G, T, …]."""
        return _unsorted(states, self.step, self._offset, self.queries)

    def as_keys(self, states: Tensor) -> Tensor:
        """Undo `key_order`, [G, S', …] → [G, S, …]."""
        return _unsorted(states, self.step, 0, self.keys)

    def query_positions(self, device: torch.device) -> Tensor:
        """Return the positions of the sorted queries, int32 [T']."""
        positions = torch.arange(self.first, self.first + self.queries, device=device, dtype=torch.int32)
        return self.query_order(positions[None])[0]

    def key_positions(self, device: torch.device) -> Tensor:
        return self.key_order(torch.arange(self.keys, device=device, dtype=torch.int32)[None])[0]


def arrangements_of(
    pattern: Pattern, queries: int, keys: int, position: int, regroup: bool = True
) -> tuple[Arrangement, ...]:
    """Return the arrangement of each term of the pattern.

    Without `regroup`, or with fewer queries than classes, there is one arrangement that keeps the order of positions:
    with so few queries, sorting the keys would take longer than attending to all of them.
    """
    terms = layout_of(pattern, queries, keys, position).terms if regroup else (PatternTerm(pattern),)
    if max(term.step for term in terms) > max(1, queries):
        terms = (PatternTerm(pattern),)
    return tuple(_arrangement(term, queries, keys, position) for term in terms)


def merged(outputs: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Merge softmaxes over disjoint sets of keys, (context [G, T, F], lse [G, T]) each, into that over all keys."""
    lses = torch.stack([lse for _, lse in outputs])
    nothing = (lses == -torch.inf).all(0)
    total = torch.logsumexp(lses.masked_fill(nothing, 0), 0).masked_fill(nothing, -torch.inf)
    fractions = torch.exp(lses - total.masked_fill(nothing, 0))[..., None]
    context = outputs[0][0] * fractions[0]
    for (term_context, _), fraction in zip(outputs[1:], fractions[1:], strict=True):
        context = torch.addcmul(context, term_context, fraction)
    return context.to(outputs[0][0].dtype), total


def _arrangement(term: PatternTerm, queries: int, keys: int, position: int) -> Arrangement:
    if term.step == 1:
        return Arrangement(term.pattern, 1, position, queries, keys)
    members = -(-(position % term.step + queries) // term.step), -(-keys // term.step)
    pattern = ByClass(term, keys, position // term.step, *members)
    return Arrangement(pattern, term.step, position, queries, keys)


def _sorted(states: Tensor, step: int, offset: int, fill: float = 0.0) -> Tensor:
    """Sort by residue class, [G, N, …] → [G, step · M, …]; classes are padded with `fill`."""
    if step == 1:
        return states
    rows, length, *rest = states.shape
    classes = regroup(states.reshape(rows, length, prod(rest)), step, offset, fill)  # [step, G, M, D]
    return classes.transpose(0, 1).reshape(rows, step * classes.shape[2], *rest)


def _unsorted(states: Tensor, step: int, offset: int, length: int) -> Tensor:
    if step == 1:
        return states
    rows, size, *rest = states.shape
    classes = states.view(rows, step, size // step, prod(rest)).transpose(0, 1)
    return ungroup(classes, length, offset).reshape(rows, length, *rest).contiguous()


@dataclass(frozen=True, repr=False)
class ByClass(Pattern):
    """A term with a step as a pattern of places: sorted by class, then by member of the class."""

    term: PatternTerm
    keys: int
    first: int  # the member of its class that the first query is
    query_members: int
    key_members: int  # members of each class, including padding

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        step, term = self.term.step, self.term
        query_at = (i % self.query_members + self.first) * step + i // self.query_members
        key_at = j % self.key_members * step + j // self.key_members
        allowed = (i // self.query_members == j // self.key_members) & (key_at < self.keys)
        allowed = allowed & term.pattern.allows(query_at, key_at, self.keys)
        return allowed if term.without is None else allowed & ~term.without.allows(query_at, key_at, self.keys)

    def spans(self, first: int, last: int, size: int) -> Spans:
        return self._in_classes(first, last, lambda members: self._columns(members)[0])

    def certain(self, first: int, last: int, size: int) -> Spans:
        """Return the certain keys; none if the queries belong to two classes, which share no key."""
        if first // self.query_members != (last - 1) // self.query_members:
            return ()
        return self._in_classes(first, last, lambda members: runs.difference(*self._columns(members)))

    def _columns(self, members: Span) -> tuple[Spans, Spans]:
        return columns_of(self.term, self.keys, self.first, (members,))

    def _in_classes(self, first: int, last: int, ask: Callable[[Span], Spans]) -> Spans:
        """Return as places the spans that `ask` gives for the members of each class in first … last − 1."""
        spans: list[Span] = []
        for number in range(first // self.query_members, -(-last // self.query_members)):
            begin = number * self.query_members
            members = max(first - begin, 0), min(last - begin, self.query_members)
            size = -(-(self.keys - number) // self.term.step)
            offset = number * self.key_members
            spans += [(lo + offset, hi + offset) for lo, hi in runs.clip(ask(members), size)]
        return runs.union(spans)

    def __str__(self) -> str:
        return f"{self.term.pattern} in classes of {self.term.step}"
