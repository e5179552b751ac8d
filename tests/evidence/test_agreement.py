"""Rank correlation against SciPy's definition by hand, and what agreement leaves out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.evidence.agreement import agreement, evidence
from regard.metrics.rank_correlation import spearman
from tests.look.test_trace import full_trace


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3, 4, 5], [5, 6, 7, 8, 7], 0.8207826816681233),  # the textbook's example with a tie
        ([1, 1, 1], [1, 2, 3], None),
        ([1], [1], None),
    ],
)
def test_known_values(one: list[float], other: list[float], expected: float | None) -> None:
    result = spearman(np.array(one, float), np.array(other, float))
    assert result == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.floats(-9, 9), min_size=2, max_size=9, unique=True), st.randoms())
def test_without_ties_it_is_the_formula_of_squared_differences(values: list[float], random: object) -> None:
    other = list(values)
    random.shuffle(other)  # type: ignore[attr-defined]
    ranks = [np.argsort(np.argsort(each)) for each in (values, other)]
    count = len(values)
    expected = 1 - 6 * ((ranks[0] - ranks[1]) ** 2).sum() / (count * (count**2 - 1))
    assert spearman(np.array(values), np.array(other)) == pytest.approx(expected)


def test_weights_agree_with_themselves_and_end_tokens_do_not_count() -> None:
    trace = full_trace()
    weights = trace.by_words()[2]
    assert agreement(weights, weights, trace) == pytest.approx(1.0)
    other = weights.copy()
    other[-1], other[:, -1] = 7, -7
    assert evidence("x", other, trace).agreement == pytest.approx(1.0)
    assert evidence("x", -weights, trace).agreement == pytest.approx(-1.0)
