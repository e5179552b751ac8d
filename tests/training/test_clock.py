"""The clock of a run."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.training.clock import MIN_UPDATES, Clock, fitted_batch
from tests.training.fake_time import Time


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Time:
    result = Time()
    monkeypatch.setattr(time, "monotonic", result)
    return result


def test_the_pace_is_that_of_updates_alone(passing: Time) -> None:
    clock = Clock(100.0)
    for update in range(1, 11):
        passing.passes(0.5)
        clock.tick(update)
        with clock.paused():
            passing.passes(3.0)
            with clock.paused():
                passing.passes(1.0)
    assert clock.pace == pytest.approx(0.5) and clock.measured == 9
    assert clock.seconds == pytest.approx(45) and clock.left == pytest.approx(55)


def test_the_pace_is_that_of_late(passing: Time) -> None:
    clock = Clock(100.0)
    for update in range(1, 201):
        passing.passes(0.1 if update <= 100 else 0.4)
        clock.tick(update)
    assert clock.pace == pytest.approx(0.4)
    clock.clear()
    assert clock.measured == 0


def test_it_is_read_after_a_trial_and_from_then_on_every_so_often(passing: Time) -> None:
    clock = Clock(100.0)
    assert not clock.due(0, planned=False, soon=True)
    for update in range(1, 8):
        passing.passes(0.3)
        clock.tick(update)
    assert clock.due(7, planned=False, soon=True) and not clock.due(7, planned=False, soon=False)
    clock.planned_at = clock.seconds
    passing.passes(1.0)
    assert not clock.due(7, planned=True, soon=True)
    passing.passes(5.0)
    assert clock.due(7, planned=True, soon=True)


def test_without_a_limit_nothing_is_due(passing: Time) -> None:
    clock = Clock(None)
    for update in range(1, 100):
        passing.passes(1.0)
        clock.tick(update)
    assert not clock.due(99, planned=False, soon=True)


@given(batch=st.floats(0.01, 1), smallest=st.floats(0.01, 1), fixed=st.floats(0.0, 1.0), fits=st.floats(0.0, 20_000.0))
def test_a_fitted_batch_lets_enough_updates_fit(batch: float, smallest: float, fixed: float, fits: float) -> None:
    """An update of fraction b takes fixed + (1 − fixed) · b."""
    smallest = min(batch, smallest)
    result = fitted_batch(batch, smallest, fits)
    assert smallest <= result <= 1
    cost = {size: fixed + (1 - fixed) * size for size in (batch, result)}
    now = fits * cost[batch] / cost[result]
    assert result == smallest or result < batch or now >= 0.35 * MIN_UPDATES
    assert result <= batch or fits >= MIN_UPDATES or fits * batch >= MIN_UPDATES
