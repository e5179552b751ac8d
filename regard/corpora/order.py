"""Batches of similar length over rows of any number, in an order that is a pure function of (seed, epoch).

Rows are sorted once by the lengths of target and source. In an epoch, rows of equal lengths are permuted, and batches
are cut from the sorted sequence as `text/batches.py` cuts them; so nothing has to be sorted or stored for an epoch but
the ends of its batches.

With weights, an epoch is a systematic sample (Madow 1949): row k takes w_k of a line, and points at distance 1 on it,
which begin at a random place below 1, are the examples. A row of weight w is hit w times on average, ⌊w⌋ or ⌈w⌉ times
in each epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.corpora.arrays import Ints, scratch
from regard.corpora.permutation import permuted

Lengths = Callable[[Ints], tuple[Ints, Ints]]  # the lengths of source and target of rows


@dataclass(frozen=True)
class LengthOrder:
    """Rows, sorted by length. A class has the rows of one source of data with equal lengths; a group has all rows with
    equal lengths: consecutive classes."""

    rows: Ints  # [N]
    starts: Ints  # [C + 1]: where in `rows` each class begins
    weights: NDArray[np.float64]  # [C]: the weight of the rows of a class
    groups: Ints  # [G + 1]: the first class of each group
    longest: Ints  # [G]: the longer side of a group's rows, the end token counted

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(
        cls,
        pieces: Callable[[], Iterable[Ints]],
        lengths: Lengths,
        part_ends: Ints,
        weights: Sequence[float],
        folder: Path,
    ) -> LengthOrder:
        """Sort the rows that `pieces()` yields, in two passes. Row r belongs to the first part with r < part_ends."""
        keys, counts = _counted(_class_keys(rows, lengths, part_ends) for rows in pieces())
        starts = np.concatenate([[0], np.cumsum(counts)])
        ordered, place = scratch(folder, int(starts[-1]), np.int64), starts[:-1].copy()
        for rows in pieces():
            classes = np.searchsorted(keys, _class_keys(rows, lengths, part_ends))
            order = np.argsort(classes, kind="stable")
            present, first, sizes = np.unique(classes[order], return_index=True, return_counts=True)
            ordered[np.repeat(place[present] - first, sizes) + np.arange(len(rows))] = rows[order]
            place[present] += sizes
        target, source, part = keys >> 40, (keys >> 16) & 0xFFFFFF, keys & 0xFFFF
        groups = np.concatenate([np.flatnonzero(np.diff(keys >> 16, prepend=-1)), [len(keys)]])
        longest = np.maximum(target, source)[groups[:-1]] + 1
        return cls(ordered, starts, np.array(weights, np.float64)[part], groups, longest)

    def epoch(self, seed: int, number: int) -> OrderedEpoch:
        """Return the examples of an epoch."""
        random = np.random.default_rng([seed, number, 1])
        offset = 0.0 if bool((self.weights == 1).all()) else float(random.random())
        line = np.concatenate([[0.0], np.cumsum(np.diff(self.starts) * self.weights)])
        bounds = np.maximum(0, np.ceil(line[self.groups] - offset)).astype(np.int64)
        return OrderedEpoch(self, line, offset, bounds, random.integers(1 << 62, size=3))


@dataclass(frozen=True)
class OrderedEpoch:
    """The examples of one epoch: places on a line, each with a row."""

    order: LengthOrder
    line: NDArray[np.float64]  # [C + 1]: where the class begins on the line
    offset: float  # of the first point
    bounds: Ints  # [G + 1]: the first place of each group
    keys: Ints  # [3]: random

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def rows(self, places: Ints) -> Ints:
        """Return the row at each place."""
        order, line = self.order, self.line
        groups = np.searchsorted(self.bounds, places, "right") - 1
        first = self.bounds[groups]
        places = first + permuted(places - first, self.bounds[groups + 1] - first, self.keys[0] + groups)
        points = places + self.offset
        classes = np.searchsorted(line, points, "right") - 1
        classes = np.clip(classes, order.groups[groups], order.groups[groups + 1] - 1)
        sizes = order.starts[classes + 1] - order.starts[classes]
        within = ((points - line[classes]) / order.weights[classes]).astype(np.int64)
        within = permuted(np.clip(within, 0, sizes - 1), sizes, self.keys[1] + classes)
        return np.asarray(order.rows[order.starts[classes] + within])

    def batches(self, sentences: int, tokens: int) -> Ints:
        """Return [B, 2]: the places of each batch, from and to, in random order of the batches."""
        ends = np.array([0, *_cuts(self.bounds, self.order.longest, sentences, tokens)])
        random = np.random.default_rng(int(self.keys[2]))
        return np.stack([ends[:-1], ends[1:]], 1)[random.permutation(len(ends) - 1)]


def _cuts(bounds: Ints, longest: Ints, sentences: int, tokens: int) -> Iterator[int]:
    """Yield the ends of the batches: at most `sentences` and, including padding, `tokens` in each."""
    begin = place = widest = 0  # the present batch: where it begins and ends so far, and its longest example
    for last, length in zip(bounds[1:].tolist(), longest.tolist(), strict=True):
        while place < last:
            room = min(sentences, tokens // max(widest, length)) - (place - begin)
            if place > begin and room < 1:
                yield place
                begin, widest = place, 0
            else:
                widest = max(widest, length)
                place = min(last, place + max(1, room))
    if place > begin:
        yield place


def _class_keys(rows: Ints, lengths: Lengths, part_ends: Ints) -> Ints:
    """Return a number for each row, by which rows are sorted: (target length, source length, part)."""
    source, target = lengths(rows)
    return (target << 40) | (source << 16) | np.searchsorted(part_ends, rows, "right")


def _counted(pieces: Iterable[Ints]) -> tuple[Ints, Ints]:
    """Return the distinct values of all pieces, sorted, and how often each occurs."""
    values, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for piece in pieces:
        new, new_counts = np.unique(piece, return_counts=True)
        values, place = np.unique(np.concatenate([values, new]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, new_counts]), len(values)).astype(np.int64)
    return values, counts
