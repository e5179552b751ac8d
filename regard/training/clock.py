"""The clock of a run: how much time is left, how long an update takes, and what size of batch lets enough fit."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

ENOUGH = 1200
"""updates for which batches are made smaller, if that is what it takes: fewer of larger batches taught models less"""
FIXED = 0.4
"""the fraction of a small batch's time that a larger one does not add to"""
WINDOW = 0.1
"""the fraction of the time over which the pace of updates is measured"""
READ = 0.04
"""the fraction of the time after which the clock is read again"""
TRIAL = 24
"""updates before the clock is first read; on the CPU fewer, if those took their time"""
TRIAL_FEW = 6
TRIAL_SECONDS = 0.015
"""and the fraction of the time that they take at least: a processor takes a while to come up to speed"""
TRIAL_MOST = 0.1
"""and the fraction after which even one update must do"""


class Clock:
    """Counts the seconds since a run began, those of its updates apart from all others.

    Everything may change in the middle of a run: other programs come and go.
    """

    def __init__(self, limit: float | None, began: float | None = None) -> None:
        """`limit` seconds may pass since it `began`, by `time.monotonic`; None: no limit, and now."""
        self.limit = limit
        self.began = time.monotonic() if began is None else began
        self._beside = 0.0
        self._ticks: deque[tuple[int, float]] = deque()
        self._read = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        assert self.limit is not None
        return self.limit - self.seconds

    @contextmanager
    def beside(self) -> Iterator[None]:
        """What happens inside is not part of an update's time."""
        began, before = time.monotonic(), self._beside
        try:
            yield
        finally:
            self._beside = before + time.monotonic() - began  # what was noted inside is part of it

    def tick(self, update: int) -> None:
        """Note that so many updates are done now."""
        now = self.seconds - self._beside
        self._ticks.append((update, now))
        window = WINDOW * (self.limit or 0.0)
        while len(self._ticks) > 2 and self._ticks[1][1] < now - window:
            self._ticks.popleft()

    def forget(self) -> None:
        """Measure anew: updates are of another size from now on."""
        self._ticks.clear()

    @property
    def measured(self) -> int:
        """Updates over which the pace is measured."""
        return self._ticks[-1][0] - self._ticks[0][0] if self._ticks else 0

    @property
    def pace(self) -> float:
        """Seconds an update took of late."""
        return (self._ticks[-1][1] - self._ticks[0][1]) / max(1, self.measured)

    def due(self, update: int, planned: bool, soon: bool) -> bool:
        """Is it time to plan? `soon`: a few updates are enough for a first plan."""
        if self.limit is None or not self.measured:
            return False
        if planned:
            return self.seconds - self._read >= READ * self.limit and self.measured >= 2
        spent = self.pace * self.measured
        if soon and spent >= TRIAL_MOST * self.limit:
            return True
        return update >= (TRIAL_FEW if soon else TRIAL) and spent >= min(1.0, TRIAL_SECONDS * self.limit)

    def was_read(self) -> None:
        self._read = self.seconds


def fitted_batch(batch: float, smallest: float, updates: float) -> float:
    """Return the size of batch, as a fraction of the recipe's, of which enough updates fit into the time that is left.

    batch      the size of now, of which `updates` fit
    smallest   never smaller than this

    A larger batch takes longer at most by as much as it is larger: where even so enough fit, it is the recipe's.
    """
    if updates * batch >= ENOUGH:
        return 1.0
    larger = (updates / ENOUGH - FIXED) / (1 - FIXED) if updates > ENOUGH else updates / ENOUGH
    return min(1.0, max(smallest, batch * larger))
