"""Rank correlation against SciPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from regard.metrics.rank_correlation import spearman

PAIRS = st.lists(st.tuples(st.integers(-4, 4), st.floats(-2, 2)), min_size=2, max_size=40)


@given(PAIRS)
def test_it_is_scipys_with_ties(pairs: list[tuple[int, float]]) -> None:
    one, other = (np.array(column, float) for column in zip(*pairs, strict=True))
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert spearman(one, other) is None
    else:
        assert spearman(one, other) == pytest.approx(float(spearmanr(one, other).statistic), abs=1e-9)
