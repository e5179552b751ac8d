"""The clock of a run: the time that is left, the seconds per update, and the batch size of which enough updates fit."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import torch

MIN_UPDATES = 1200
"""updates for which batches are made smaller if necessary: models learned less from fewer updates of larger batches"""
FIXED_COST = 0.4  # the fraction of a small batch's time that does not grow with the batch
PACE_WINDOW = 0.1  # the fraction of the time limit over which the pace of updates is measured
REPLAN_INTERVAL = 0.04  # the fraction of the time limit between two plans
TRIAL_UPDATES = 24  # updates before the first plan
TRIAL_UPDATES_CPU = 6  # the same on a CPU, if they take their time (`TRIAL_TIME`)
TRIAL_TIME = 0.015
"""the fraction of the time limit that these updates take at least: a processor takes a while to come up to speed"""
MAX_TRIAL_TIME = 0.1  # the fraction of the time limit after which even one update must do


def limit_seconds(minutes: float | None) -> float | None:
    """Return a time limit in seconds, None for none; raise a ValueError unless it is a number above 0."""
    if minutes is not None and not 0 < minutes < 1e6:
        raise ValueError(f"minutes: expected a number above 0, got {minutes!r}")
    return None if minutes is None else 60 * minutes


class Clock:
    """Counts the seconds since a run began, and apart from them those of its updates.

    The pace may change in the middle of a run: other programs come and go.
    """

    def __init__(self, limit: float | None, began: float | None = None) -> None:
        """`limit` seconds may pass since the run `began`, by `time.monotonic`; None: no limit, and now."""
        self.limit = limit
        self.began = time.monotonic() if began is None else began
        self._paused = 0.0  # seconds that were not part of updates
        self._ticks: deque[tuple[int, float]] = deque()
        self.planned_at = 0.0  # when the last plan was made

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        assert self.limit is not None
        return self.limit - self.seconds

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the time spent inside as time of updates."""
        began, before = time.monotonic(), self._paused
        try:
            yield
        finally:
            self._paused = before + time.monotonic() - began  # pauses inside of this one are part of it

    @contextmanager
    def paused_after(self, update: int, device: torch.device) -> Iterator[None]:
        """Wait for so many updates that a GPU may still compute, and pause."""
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            self.tick(update)
        with self.paused():
            yield

    def tick(self, update: int) -> None:
        """Note that so many updates are done now."""
        now = self.seconds - self._paused
        self._ticks.append((update, now))
        window = PACE_WINDOW * (self.limit or 0.0)
        while len(self._ticks) > 2 and self._ticks[1][1] < now - window:
            self._ticks.popleft()

    def clear(self) -> None:
        """Forget the pace, because batches have another size from now on."""
        self._ticks.clear()

    @property
    def measured(self) -> int:
        """the number of updates over which the pace is measured"""
        return self._ticks[-1][0] - self._ticks[0][0] if self._ticks else 0

    @property
    def pace(self) -> float:
        """seconds per update, over the last updates"""
        return (self._ticks[-1][1] - self._ticks[0][1]) / max(1, self.measured)

    def due(self, update: int, planned: bool, soon: bool) -> bool:
        """Return whether it is time to plan. `soon`: a few updates are enough for the first plan."""
        if self.limit is None or not self.measured:
            return False
        if planned:
            return self.seconds - self.planned_at >= REPLAN_INTERVAL * self.limit and self.measured >= 2
        spent = self.pace * self.measured
        if soon and spent >= MAX_TRIAL_TIME * self.limit:
            return True
        trial_updates = TRIAL_UPDATES_CPU if soon else TRIAL_UPDATES
        return update >= trial_updates and spent >= min(1.0, TRIAL_TIME * self.limit)


def fitted_batch(batch: float, smallest: float, updates: float) -> float:
    """Return the batch size, as a fraction of the recipe's, of which enough updates fit into the time that is left.

    batch      the present size, of which `updates` fit
    smallest   the minimum

    The time of an update grows at most in proportion to the batch: where enough updates of the recipe's size fit even
    then, it is the recipe's.
    """
    if updates * batch >= MIN_UPDATES:
        return 1.0
    fit = updates / MIN_UPDATES
    larger = (fit - FIXED_COST) / (1 - FIXED_COST) if updates > MIN_UPDATES else fit
    return min(1.0, max(smallest, batch * larger))
