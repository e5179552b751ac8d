"""The progress of a comparison: a line for each active run, and one for all of them together."""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from typing import Protocol

from regard.experiments.processes import RunProcess
from regard.training.progress import clock

SHOWN_SECONDS = 0.5  # seconds between two displays
SETUP_SECONDS = 15.0  # seconds of a run besides its minutes: starting the process, and scoring


class Watcher(Protocol):
    """Where a user watches a comparison."""

    def say(self, text: str) -> None:
        """Print a line that stays."""

    def show(self, lines: Sequence[str]) -> None:
        """Show the present state, in place of what the last call showed."""

    def close(self) -> None:
        """End the display of the present state."""


class SilentWatcher:
    """A watcher that shows nothing."""

    def say(self, text: str) -> None: ...
    def show(self, lines: Sequence[str]) -> None: ...
    def close(self) -> None: ...


class WatcherScreen:
    """A screen, as reading data needs one, that prints on a watcher."""

    def __init__(self, watcher: Watcher) -> None:
        self.say = watcher.say

    def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None: ...
    def status(self, text: str) -> None: ...
    def close(self) -> None: ...


class ComparisonProgress:
    """Follows the runs of a comparison, and shows them to a watcher."""

    def __init__(self, watcher: Watcher, total: int, done: int, at_once: int, minutes: float | None) -> None:
        self._watcher, self._total, self._done, self._at_once = watcher, total, done, at_once
        # of a run, as planned
        self._planned = None if minutes is None else 60 * minutes + SETUP_SECONDS
        self._measured: list[float] = []  # seconds of the runs that have ended
        self._shown = 0.0

    def watch(self, active: Sequence[RunProcess], waiting: int) -> None:
        """Show what every active run does, and how long all runs will take, at intervals."""
        if time.monotonic() - self._shown < SHOWN_SECONDS:
            return
        self._shown = time.monotonic()
        lines = [f"{run.job.name}: {run.fraction:4.0%}  {run.activity}" for run in active]
        self._watcher.show([*lines, self._position(len(active)) + self._left(active, waiting)])

    def ended(self, run: RunProcess, failure: str | None) -> None:
        """Say how a run ended."""
        self._done += 1
        if failure is None:
            self._measured.append(run.seconds)
        outcome = f"done in {clock(run.seconds)}" if failure is None else f"failed: {failure}"
        self._watcher.say(f"run {self._done} of {self._total}: {run.job.name}: {outcome}")

    def _left(self, active: Sequence[RunProcess], waiting: int) -> str:
        """Return the time until all runs have ended, as far as it is known.

        A run takes as long as those that have ended did in the mean: they may have stopped early.
        """
        expected = sum(self._measured) / len(self._measured) if self._measured else self._planned
        if expected is None:
            return ""
        left = seconds_left([run.seconds for run in active], waiting, expected, self._at_once)
        return f", {_about(left)} left"

    def _position(self, active: int) -> str:
        first, last = self._done + 1, self._done + active
        return f"run {first} of {self._total}" if active < 2 else f"runs {first} to {last} of {self._total}"


def seconds_left(active: Sequence[float], waiting: int, expected: float, at_once: int) -> float:
    """Return the seconds until all runs have ended, if each takes the `expected` seconds, of which `active` passed."""
    ends = [max(0.0, expected - seconds) for seconds in active] + [0.0] * (at_once - len(active))
    heapq.heapify(ends)
    for _ in range(waiting):
        heapq.heappush(ends, heapq.heappop(ends) + expected)
    return max(ends, default=0.0)


def _about(seconds: float) -> str:
    if seconds < 90:
        return "about a minute"
    return f"about {round(seconds / 60)} minutes"
