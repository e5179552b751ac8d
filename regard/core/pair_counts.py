"""How many pairs of a query and a key a pattern allows: in total, and in the cells of a grid over all pairs.

The keys of one query are listed analytically. Without stride they are spans; terms with a stride add the keys of spans
that are congruent to the query, whose number in a span is a quotient. Overlaps of such terms are the keys congruent to
the query modulo the least common multiple of their steps (inclusion and exclusion). The cost of a query does not depend
on how many keys it attends to; of many queries, a sample is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import torch

from regard.core import spans as runs
from regard.core.kernels.cpu.parts import as_union
from regard.core.patterns import Pattern, PerHead
from regard.core.spans import Spans

Counts = np.ndarray[Any, np.dtype[np.float64]]
_MAX_STEPS = 6  # distinct strides of a union, which has 2⁶ overlaps; with more, keys are counted one by one
_MAX_PAIRS = 1 << 23  # that are counted one by one
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class PairCounts:
    """The allowed pairs of a pattern in a grid of cells."""

    cells: Counts
    """[rows of cells, columns of cells]: the fraction of the pairs of each cell that the pattern allows"""
    side: int
    """of a cell, in positions; the last row and column of cells may be smaller"""
    allowed: float
    """the number of all allowed pairs"""
    counted_queries: int
    """of how many queries the keys were counted; if not of all, the numbers are estimates"""


def count_pairs(
    pattern: Pattern, queries: int, keys: int, position: int = 0, max_cells: int = 64, sample: int = 2048
) -> PairCounts:
    """Return the allowed pairs of a pattern in a grid of at most `max_cells` × `max_cells` square cells.

    The first query is at `position`, the first key at 0. Up to `sample` queries all are counted. Of more, some of each
    row of cells are drawn; the few that attend to far more keys than their neighbours (`heavy_rows`) are drawn
    separately.
    """
    if isinstance(pattern, PerHead):
        raise ValueError("pattern: expected one for all heads, got one for each")
    side = max(1, -(-max(queries, keys) // max_cells))
    rows, columns = -(-queries // side), -(-keys // side)
    bounds = np.minimum(np.arange(columns + 1) * side, keys)
    totals = np.zeros((rows, columns))
    counted = 0
    heavy = np.array([row - position for row in pattern.heavy_rows], dtype=np.int64)
    heavy = heavy[(heavy >= 0) & (heavy < queries)]
    others = np.setdiff1d(np.arange(queries), heavy, assume_unique=True)
    for population, part in ((heavy, pattern), (others, pattern.light)):
        terms = as_union(part)
        one_by_one = len({term.step for term in terms}) > _MAX_STEPS
        if one_by_one:
            sample = min(sample, _MAX_PAIRS // max(1, keys))
        below = partial(_evaluated_below, part) if one_by_one else partial(_listed_below, terms)
        for chosen, weight in _drawn(population, side, max(1, sample // max(1, rows)), queries <= sample):
            counted += len(chosen)
            for row in chosen.tolist():
                totals[row // side] += weight * np.diff(below(position + row, keys, bounds))
    heights = np.diff(np.minimum(np.arange(rows + 1) * side, queries))
    sizes = heights[:, None] * np.diff(bounds)[None]
    return PairCounts(totals / np.maximum(sizes, 1), side, float(totals.sum()), counted)


def _drawn(population: Any, side: int, count: int, all_of_them: bool) -> Iterator[tuple[Any, float]]:
    """Yield for each row of cells (some of the queries in it, how many each stands for)."""
    generator = np.random.default_rng(0)  # not evenly spaced, which could be in step with a pattern of blocks
    for own in np.split(population, np.searchsorted(population, np.arange(side, population.max(initial=0) + 1, side))):
        if all_of_them or len(own) <= count:
            yield own, 1.0
            continue
        strata = np.linspace(0, len(own), count + 1).astype(np.int64)
        yield own[generator.integers(strata[:-1], strata[1:])], len(own) / count


def _evaluated_below(pattern: Pattern, row: int, keys: int, bounds: Any) -> Counts:
    """Return how many keys below each bound the query `row` may attend to, each of them evaluated."""
    below = np.concatenate([[0.0], np.cumsum(_evaluated(pattern, row, 0, keys, keys), dtype=np.float64)])
    at_bounds: Counts = below[bounds]
    return at_bounds


def _listed_below(terms: Sequence[Pattern], row: int, keys: int, bounds: Any) -> Counts:
    """Return how many keys below each bound the query `row` may attend to, of a union of terms."""
    plain = runs.union(*(_exact_spans(term, row, keys) for term in terms if term.step == 1))
    by_step: dict[int, Spans] = {}
    for term in terms:
        if term.step > 1:
            others = runs.difference(_exact_spans(term.unstrided, row, keys), plain)
            by_step[term.step] = runs.union(by_step.get(term.step, ()), others)
    total = _congruent_below(plain, 1, row, bounds)
    for size in range(1, len(by_step) + 1):
        for steps in combinations(by_step, size):
            common = by_step[steps[0]]
            for step in steps[1:]:
                common = runs.intersection(common, by_step[step])
            total += (-1) ** (size + 1) * _congruent_below(common, math.lcm(*steps), row, bounds)
    return total


def _congruent_below(spans: Spans, step: int, row: int, bounds: Any) -> Counts:
    """Return how many j of the spans are below each bound and congruent to `row` modulo `step`."""
    if not spans:
        return np.zeros(len(bounds))
    lo, hi = np.array(spans, dtype=np.int64).T
    ends = np.clip(bounds[:, None], lo, hi)  # [bounds, spans]
    residue = row % step
    counts: Counts = ((ends - 1 - residue) // step - (lo - 1 - residue) // step).sum(1).astype(np.float64)
    return counts


def _exact_spans(pattern: Pattern, row: int, keys: int) -> Spans:
    """Return the keys of one query. What the pattern cannot list is evaluated key by key."""
    possible, certain = pattern.spans(row, row + 1, keys), pattern.certain(row, row + 1, keys)
    doubtful = runs.difference(possible, certain)
    if not doubtful:
        return possible
    evaluated = [certain]
    for lo, hi in doubtful:
        edges = np.flatnonzero(np.diff(_evaluated(pattern, row, lo, hi, keys), prepend=False, append=False)) + lo
        evaluated.append(tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)))
    return runs.union(*evaluated)


def _evaluated(pattern: Pattern, row: int, first: int, last: int, keys: int) -> Any:
    """Return bool [last − first]: which of these keys the query `row` may attend to."""
    i, j = torch.tensor([[row]], device=_CPU), torch.arange(first, last, device=_CPU)[None]
    return pattern.allows(i, j, keys)[0].numpy()
