"""When the clock has been read often enough."""

import time
from collections import deque
from types import SimpleNamespace

import pytest

from regard.training.checkpoint import Progress
from regard.training.loop import Loop
from regard.training.recording import STEADY, RecordedUpdate


def loop(played: float | None, spent: float) -> Loop:
    """100 s may pass, 20 of which went by before the first update; `spent` on updates, of which a share was `played`
    back; None: none is recorded."""
    made = Loop.__new__(Loop)
    made._limit, made._started = 100.0, time.monotonic() - 20 - spent
    made.reporter = SimpleNamespace(seconds_of_updates=spent)  # type: ignore[assignment]
    if played is None:
        made._update = SimpleNamespace()  # type: ignore[assignment]
        return made
    made._update = RecordedUpdate.__new__(RecordedUpdate)
    made._update._played = deque(number < played * STEADY for number in range(STEADY))
    return made


@pytest.mark.parametrize(
    ("played", "spent", "steady"),
    [(None, 1.0, True), (0.5, 1.0, False), (0.5, 38.0, False), (0.5, 42.0, True), (0.97, 1.0, True)],
)
def test_updates_are_steady_when_they_are_played_back_or_half_of_the_time_is_gone(
    played: float | None, spent: float, steady: bool
) -> None:
    assert loop(played, spent)._steady == steady


def test_the_pace_is_that_since_the_clock_was_read() -> None:
    made = loop(None, 30.0)
    made.progress = Progress(update=130)
    made.reporter = SimpleNamespace(seconds_an_update=0.5)  # type: ignore[assignment]
    made._preparing, made._read = 0.25, None
    assert made._pace == 0.75
    made._read = 120, 40.0  # too few since
    assert made._pace == 0.75
    made._read = 100, 44.0
    assert made._pace == pytest.approx((50 - 44) / 30, abs=0.01)
