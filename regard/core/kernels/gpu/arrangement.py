"""Strides and dilations for kernels that walk along blocks: positions sorted by residue classes.

A term of a pattern with a step allows only pairs of one class of positions mod step. With class 0 first (0, step,
2·step, …), then class 1 and so on, its pairs lie in blocks along the diagonal: a stride is full attention there, a
dilation a window. Terms without a step stay as they are. Each term leaves out what the terms before it have (parts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

from regard.core import spans as runs
from regard.core.kernels.cpu.parts import Term, columns_of, terms_of
from regard.core.kernels.flat import Flat
from regard.core.kernels.residues import regroup, ungroup
from regard.core.patterns import Pattern
from regard.core.spans import Span, Spans


@dataclass(frozen=True)
class Arrangement:
    """One term, and the order of its queries and keys."""

    pattern: Pattern
    """of places in that order"""
    step: int
    first: int
    """the position of the first query"""
    queries: int
    keys: int
    """how many there are"""

    @property
    def position(self) -> int:
        """Of the first query, in that order."""
        return self.first if self.step == 1 else 0

    @property
    def _offset(self) -> int:
        """What the first query's class lacks in front of it, as do those before."""
        return self.first % self.step

    def query_order(self, states: Tensor, fill: float = 0.0) -> Tensor:
        """[G, T, …] → [G, T', …]; `fill` stands where there is no query."""
        return _sorted(states, self.step, self._offset, fill)

    def key_order(self, states: Tensor) -> Tensor:
        """[G, S, …] → [G, S', …]"""
        return _sorted(states, self.step, 0)

    def visible_order(self, visible: Flat | None) -> Flat | None:
        return None if visible is None else Flat(self.key_order(visible.tensor), visible.index)

    def as_queries(self, states: Tensor) -> Tensor:
        """[G, T', …] → [G, T, …]"""
        return _unsorted(states, self.step, self._offset, self.queries)

    def as_keys(self, states: Tensor) -> Tensor:
        """[G, S', …] → [G, S, …]"""
        return _unsorted(states, self.step, 0, self.keys)

    def query_places(self, device: torch.device) -> Tensor:
        """int32 [T']: positions"""
        count = torch.arange(self.first, self.first + self.queries, device=device, dtype=torch.int32)
        return self.query_order(count[None])[0]

    def key_places(self, device: torch.device) -> Tensor:
        return self.key_order(torch.arange(self.keys, device=device, dtype=torch.int32)[None])[0]


@lru_cache(maxsize=256)
def arrangements_of(
    pattern: Pattern, queries: int, keys: int, position: int, regroup: bool = True
) -> tuple[Arrangement, ...]:
    """One for each term of the pattern. One that changes nothing without `regroup`, or where there are fewer queries
    than classes: bringing the keys in order would take longer than looking at all of them."""
    terms = terms_of(pattern, queries, keys, position) if regroup else (Term(pattern),)
    if max(term.step for term in terms) > max(1, queries):
        terms = (Term(pattern),)
    return tuple(_arranged(term, queries, keys, position) for term in terms)


def merged(found: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Softmaxes over keys that have none in common, (context [G, T, F], lse [G, T]) each → that over all of them."""
    sums = torch.stack([lse for _, lse in found])
    nothing = (sums == -torch.inf).all(0)
    total = torch.logsumexp(sums.masked_fill(nothing, 0), 0).masked_fill(nothing, -torch.inf)
    shares = torch.exp(sums - total.masked_fill(nothing, 0))[..., None]
    context = found[0][0] * shares[0]
    for (some, _), share in zip(found[1:], shares[1:], strict=True):
        context = torch.addcmul(context, some, share)
    return context.to(found[0][0].dtype), total


def _arranged(term: Term, queries: int, keys: int, position: int) -> Arrangement:
    if term.step == 1:
        return Arrangement(term.pattern, 1, position, queries, keys)
    members = -(-(position % term.step + queries) // term.step), -(-keys // term.step)
    pattern = ByClass(term, keys, position // term.step, *members)
    return Arrangement(pattern, term.step, position, queries, keys)


def _sorted(states: Tensor, step: int, offset: int, fill: float = 0.0) -> Tensor:
    """[G, N, …] → [G, step · M, …]; `fill` fills up the classes"""
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
    """A term with a step, of places: the class counts more than the member of it."""

    term: Term
    keys: int
    first: int
    """the member with which the queries begin"""
    query_members: int
    key_members: int
    """of each class, filled up"""

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        step, term = self.term.step, self.term
        at = (i % self.query_members + self.first) * step + i // self.query_members
        there = j % self.key_members * step + j // self.key_members
        shown = (i // self.query_members == j // self.key_members) & (there < self.keys)
        shown = shown & term.pattern.allows(at, there, self.keys)
        return shown if term.without is None else shown & ~term.without.allows(at, there, self.keys)

    def spans(self, first: int, last: int, size: int) -> Spans:
        return self._in_classes(
            first, last, lambda members: columns_of(self.term, self.keys, self.first, (members,))[0]
        )

    def certain(self, first: int, last: int, size: int) -> Spans:
        """Two classes have nothing in common."""

        def sure(members: Span) -> Spans:
            possible, doubtful = columns_of(self.term, self.keys, self.first, (members,))
            return runs.difference(possible, doubtful)

        one = first // self.query_members == (last - 1) // self.query_members
        return self._in_classes(first, last, sure) if one else ()

    def _in_classes(self, first: int, last: int, ask: Callable[[Span], Spans]) -> Spans:
        """What is found for the members of each class that lie in first … last − 1, as places."""
        found: list[Span] = []
        for number in range(first // self.query_members, -(-last // self.query_members)):
            begin = number * self.query_members
            members = max(first - begin, 0), min(last - begin, self.query_members)
            real = -(-(self.keys - number) // self.term.step)
            found += [
                (lo + number * self.key_members, hi + number * self.key_members)
                for lo, hi in runs.clip(ask(members), real)
            ]
        return runs.union(found)

    def __str__(self) -> str:
        return f"{self.term.pattern} in classes of {self.term.step}"
