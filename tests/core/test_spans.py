"""Spans against Python's sets."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from regard.core import spans

positions = st.sets(st.integers(0, 30))


def members(result: spans.Spans) -> set[int]:
    return {p for lo, hi in result for p in range(lo, hi)}


@given(positions, positions)
def test_algebra_is_that_of_sets(a: set[int], b: set[int]) -> None:
    left, right = spans.runs(a), spans.runs(b)
    assert members(spans.union(left, right)) == a | b
    assert members(spans.intersection(left, right)) == a & b
    assert members(spans.difference(left, right)) == a - b


@given(positions, positions)
def test_results_are_sorted_and_apart(a: set[int], b: set[int]) -> None:
    for result in (spans.union(spans.runs(a), spans.runs(b)), spans.difference(spans.runs(a), spans.runs(b))):
        assert all(lo < hi for lo, hi in result)
        assert all(one[1] < other[0] for one, other in pairwise(result))


def test_clip_keeps_what_lies_inside() -> None:
    assert spans.clip([(-3, 2), (4, 9), (9, 12)], 6) == ((0, 2), (4, 6))


def test_length_counts_positions() -> None:
    assert spans.length(((0, 2), (5, 9))) == 6
