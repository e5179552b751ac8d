"""Ridge and logistic regression against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest

from regard.tasks.translation.regression import (
    PRIORS,
    cross_validated,
    log_loss,
    logistic,
    ridge,
    sigmoid,
    squared_loss,
)

linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed here")


def drawn(rows: int, features: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a table of features of very different scale, outcomes that are 0 or 1, and others."""
    draw = np.random.default_rng(seed)
    table = draw.normal(3, 1, (rows, features))
    values = (table - 3)[:, :3] @ np.array([1.5, -1.0, 0.5]) + 0.3
    right = (draw.random(rows) < sigmoid(values)).astype(float)
    return table * 10.0 ** np.arange(-2, features - 2), right, values + draw.normal(0, 1, rows)


@pytest.mark.parametrize("prior", PRIORS)
def test_they_are_scikit_learns(prior: float) -> None:
    table, right, numbers = drawn(400)
    rows = (table - table.mean(0)) / table.std(0)
    peer = linear.LogisticRegression(C=1 / prior, tol=1e-10, max_iter=10_000).fit(rows, right)
    expected = peer.predict_proba(rows)[:, 1]
    np.testing.assert_allclose(sigmoid(logistic(table, right, prior)(table)), expected, atol=2e-4)
    peer = linear.Ridge(alpha=prior).fit(rows, numbers)
    np.testing.assert_allclose(ridge(table, numbers, prior)(table), peer.predict(rows), atol=1e-8)


def test_fractions_are_outcomes_too() -> None:
    """A fraction of 0.25 is as good as one of four rows with the outcome 1."""
    table, _, _ = drawn(30)
    fractions = np.random.default_rng(1).integers(0, 5, 30) / 4
    outcomes = np.concatenate([[1.0] * round(4 * each) + [0.0] * round(4 - 4 * each) for each in fractions])
    one, four = logistic(table, fractions, 2.5), logistic(np.repeat(table, 4, 0), outcomes, 10.0)
    np.testing.assert_allclose(one.weights, four.weights, rtol=1e-2)


def test_few_rows_get_a_strong_prior_and_many_a_weak_one() -> None:
    table, right, _ = drawn(25, features=12)
    assert cross_validated(logistic, log_loss, table, right, np.arange(25))[1] >= 10
    table, right, numbers = drawn(2000)
    assert cross_validated(logistic, log_loss, table, right, np.arange(2000))[1] <= 10
    assert cross_validated(ridge, squared_loss, table, numbers, np.arange(2000))[1] <= 10


def test_held_out_values_do_not_know_their_group() -> None:
    """Outcomes that differ by group alone, and a feature for each group: nothing can be learned of others."""
    groups = np.repeat(np.arange(40), 5)
    outcomes = np.repeat(np.random.default_rng(0).integers(0, 2, 40), 5).astype(float)
    table = (groups[:, None] == np.arange(40)).astype(float)
    fitted, _, values = cross_validated(logistic, log_loss, table, outcomes, groups)
    assert values is not None
    assert log_loss(fitted(table), outcomes) < log_loss(values, outcomes)
    assert log_loss(values, outcomes) > 0.65
    assert cross_validated(logistic, log_loss, table[:5], outcomes[:5], groups[:5])[2] is None
