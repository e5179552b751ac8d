"""Batches of large corpora: every row once, cut as `arrange` cuts them; with weights, as often as they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpora.order import LengthOrder
from regard.text.batches import arrange
from regard.text.examples import Example


def ordered(
    lengths: list[tuple[int, int]], folder: Path, weights: tuple[float, ...] = (1.0,), step: int = 7
) -> LengthOrder:
    table = np.array(lengths, np.int64).reshape(-1, 2)
    ends = np.linspace(0, len(lengths), len(weights) + 1).astype(np.int64)[1:]

    def pieces() -> Iterator[np.ndarray]:
        for first in range(0, len(table), step):
            yield np.arange(first, min(len(table), first + step))

    return LengthOrder.of(pieces, lambda rows: (table[rows, 0], table[rows, 1]), ends, weights, folder)


def batches(order: LengthOrder, sentences: int, tokens: int, seed: int, epoch: int) -> list[list[int]]:
    drawn = order.epoch(seed, epoch)
    return [drawn.rows(np.arange(first, last)).tolist() for first, last in drawn.batches(sentences, tokens).tolist()]


some_lengths = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=80)


@settings(max_examples=150, deadline=None)
@given(some_lengths, st.integers(1, 12), st.integers(1, 120), st.integers(0, 5), st.integers(0, 5))
def test_the_batches_have_the_shapes_of_those_in_memory(
    lengths: list[tuple[int, int]], sentences: int, tokens: int, seed: int, epoch: int
) -> None:
    made = batches(ordered(lengths, Path("/tmp")), sentences, tokens, seed, epoch)
    assert sorted(row for batch in made for row in batch) == list(range(len(lengths)))
    examples = [Example([3] * source, [3] * target) for source, target in lengths]
    expected = arrange(examples, sentences, tokens, seed, epoch)

    def shapes(some: list[list[int]]) -> Counter[tuple[tuple[int, int], ...]]:
        return Counter(tuple(sorted(lengths[row] for row in batch)) for batch in some)

    assert shapes(made) == shapes(expected)


def test_seed_and_epoch_fix_them(tmp_path: Path) -> None:
    lengths = [(n % 5, n % 3) for n in range(400)]
    order = ordered(lengths, tmp_path)
    first = batches(order, 16, 10**9, 1, 1)
    assert batches(order, 16, 10**9, 1, 1) == first
    assert batches(ordered(lengths, tmp_path, step=90), 16, 10**9, 1, 1) == first  # however the rows come
    for seed, epoch in ((1, 2), (2, 1)):
        other = batches(order, 16, 10**9, seed, epoch)
        assert {frozenset(batch) for batch in other} != {frozenset(batch) for batch in first}  # others meet


@pytest.mark.parametrize("weights", [(1.0, 0.25), (0.5, 2.5), (3.0, 1.0, 0.1), (0.3,)])
def test_weights_say_how_often_rows_come(weights: tuple[float, ...], tmp_path: Path) -> None:
    size, epochs = 600, 40
    lengths = [(n * 7 % 9, n * 5 % 4) for n in range(size)] + [(100, 50)]  # one of a length of its own
    order = ordered(lengths, tmp_path, weights)
    counts, seen = np.zeros((epochs, len(lengths)), np.int64), []
    for epoch in range(epochs):
        rows = [row for batch in batches(order, 20, 10**9, 3, epoch) for row in batch]
        counts[epoch] = np.bincount(rows, minlength=len(lengths))
        seen.append(len(rows))
    of_rows = np.array(weights)[
        np.searchsorted(
            np.linspace(0, len(lengths), len(weights) + 1)[1:].astype(int), np.arange(len(lengths)), "right"
        )
    ]
    assert np.all(counts >= np.floor(of_rows)) and np.all(counts <= np.ceil(of_rows))
    assert abs(np.array(seen) - of_rows.sum()).max() <= 1
    assert np.abs(counts.mean(0) - of_rows).max() < 0.35  # of each row: 40 draws
    if min(weights) < 1:
        assert len({tuple(row) for row in counts}) == epochs  # drawn anew
