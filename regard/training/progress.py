"""The reports of a run: a log of JSON lines in the model's folder, and progress on a screen."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from regard.training.checkpoint import Progress
from regard.training.open_ended import is_decaying
from regard.training.plan import Schedule
from regard.training.task import Validation

LOG_INTERVAL = 50  # updates between two entries of the log
SPEED_WINDOW = 100  # updates over which the speed is averaged
SHOWN_SECONDS = 0.2  # seconds between two updates that the screen shows, if they are not logged
SHOWN_CHANGE = 0.1  # the relative change of the number of planned updates from which on the screen shows a new plan

ADVICE = "try more data, more epochs or a higher training.learning_rate"


class Screen(Protocol):
    """Where a user watches a run."""

    def say(self, text: str) -> None:
        """Print a line that stays."""

    def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
        """Show how far the run is, in place of what the last call showed; `unit` is what `done` counts, or empty if
        `text` says it."""

    def status(self, text: str) -> None:
        """Show what happens other than updates, such as reading, until the next `advance`."""

    def close(self) -> None:
        """End the display of progress."""


class Silent:
    """A screen that shows nothing."""

    def _ignore(self, *_: Any, **__: Any) -> None:
        pass

    say = advance = status = close = _ignore


class Reporter:
    """Writes the log, and shows progress on the screen."""

    def __init__(self, log: Path | None, screen: Screen) -> None:
        """`log` None: nothing is written, as in all processes but the first."""
        self._log, self._screen = log, screen
        self._recent: deque[tuple[int, float]] = deque(maxlen=SPEED_WINDOW)  # (tokens, seconds) of the last updates
        self._losses: list[Tensor] = []
        self._loss = 0.0
        self._tokens = 0  # tokens since the run was started or resumed
        self._shown = 0.0  # when the screen last showed an update
        self._planned: Schedule | None = None  # the plan that the screen last showed
        self._estimated = False  # whether the screen has shown how long an open-ended run will take

    # The log

    @property
    def position(self) -> int:
        """the size of the log in bytes"""
        return self._log.stat().st_size if self._log is not None and self._log.exists() else 0

    def rewind(self, position: int) -> None:
        """Remove entries that were logged after a checkpoint: those updates will be repeated."""
        if self._log is not None and self.position > position:
            with self._log.open("r+b") as file:
                file.truncate(position)

    def note(self, kind: str, **facts: Any) -> None:
        """Append an entry to the log."""
        if self._log is None:
            return
        # JSON has no NaN, which a diverging run may have.
        finite = {
            key: None if isinstance(fact, float) and not math.isfinite(fact) else fact for key, fact in facts.items()
        }
        entry = {"kind": kind, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **finite}
        # File names need not be valid UTF-8; invalid bytes are escaped as in JSON.
        with self._log.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    # Events

    def say(self, text: str) -> None:
        """Log a message, and show it."""
        self.note("message", text=text)
        self._screen.say(text)

    def status(self, text: str) -> None:
        """Show what happens now, such as a validation."""
        self._screen.status(text)

    def planned(self, plan: Schedule) -> None:
        """Log a plan, and show it if it is the first or differs much from the one that was shown last."""
        self.note("plan", **asdict(plan))
        shown, size = self._planned, plan.batch_fraction
        if plan.expected:
            self._show_open_ended(plan)
            return
        if shown and shown.batch_fraction == size and abs(plan.updates / shown.updates - 1) < SHOWN_CHANGE:
            return
        self._planned = plan
        smaller = "" if size == 1 else f", batches of {size:.0%} of the recipe's size to fit the clock"
        about = "" if plan.settled else "about "
        self._screen.say(f"plan: {about}{plan.updates:,} updates, {len(plan.validations)} validations{smaller}")

    def _show_open_ended(self, plan: Schedule) -> None:
        """Show the first plan of a run that goes on while dev improves, and the one that ends it."""
        if is_decaying(plan) and not (self._planned and is_decaying(self._planned)):
            decay = plan.updates - plan.decay_from
            self._screen.say(
                f"dev improves no more: the learning rate decays over {decay:,} updates, then training ends"
            )
        elif self._planned is None:
            self._screen.say(f"plan: train while dev improves, about {plan.expected:,} updates")
        self._planned = plan

    @property
    def seconds_per_update(self) -> float:
        """seconds per update over the second half of the window; the first updates of a run are slower"""
        steady = list(self._recent)[len(self._recent) // 2 :]
        return sum(seconds for _, seconds in steady) / len(steady)

    @property
    def loss(self) -> float:
        """the mean loss of the updates since this property was last read"""
        if self._losses:
            self._loss = float(sum(self._losses) / len(self._losses))
            self._losses.clear()
        return self._loss

    def update(
        self, progress: Progress, plan: Schedule, loss: Tensor, tokens: int, seconds: float, since: float
    ) -> None:
        """Log an update, at intervals, and show it. `since`: seconds since the run began."""
        self._recent.append((tokens, seconds))
        self._tokens += tokens
        self._losses.append(loss)
        if progress.update % LOG_INTERVAL and progress.update > 3:
            if time.monotonic() - self._shown >= SHOWN_SECONDS:
                # Reading the loss would synchronize with a GPU: there the last known one is shown.
                self._show(progress, plan, self._loss if loss.is_cuda else float(loss))
            return
        before = time.monotonic()
        mean = self.loss  # synchronizes with a GPU, which completes all updates so far
        self._recent[-1] = tokens, seconds + time.monotonic() - before
        speed = {"tokens": self._tokens, "tokens_per_second": round(self._speed), "seconds": round(since, 2)}
        self.note("update", update=progress.update, epoch=progress.epoch, loss=round(mean, 4), **speed)
        if plan.expected and not self._estimated and len(self._recent) >= LOG_INTERVAL:
            self._estimated = True
            seconds = since + (plan.expected - progress.update) * self.seconds_per_update
            self._screen.say(f"about {clock(seconds)} on this machine; Ctrl-C ends it earlier and keeps the best model")
        self._show(progress, plan, mean)

    @property
    def _speed(self) -> float:
        """target tokens per second, over the last updates"""
        return sum(count for count, _ in self._recent) / max(1e-9, sum(spent for _, spent in self._recent))

    def _show(self, progress: Progress, plan: Schedule, loss: float) -> None:
        """Move the progress bar on the screen."""
        self._shown = time.monotonic()
        total = None if progress.plan is None else plan.expected or plan.updates
        left = "" if total is None else f"  {clock((total - progress.update) * self.seconds_per_update)} left"
        self._screen.advance(progress.update, total, f"loss {loss:.3f}  {self._speed:,.0f} tokens/s{left}")

    def validation(self, progress: Progress, validation: Validation, better: bool) -> None:
        """Log a validation, and show it."""
        loss = None if validation.loss is None else round(validation.loss, 4)
        scores = {"score": round(validation.score, 3), "loss": round(self.loss, 4), "dev_loss": loss, "best": better}
        facts = {**scores, "seconds": round(progress.seconds, 2), **validation.facts}
        self.note("validation", update=progress.update, epoch=progress.epoch, **facts)
        mark = "  best so far" if better else ""
        self._screen.say(f"update {progress.update:,}: {validation.summary}, loss {self.loss:.3f}{mark}")
        self._screen.say(f"    {validation.example}")

    def ended(self, progress: Progress) -> None:
        """Log the end of the run, and show it."""
        if progress.constant:
            self.say(f"nothing is learned: {progress.constant}; {ADVICE}")
        self.note(
            "end", why=progress.ended, update=progress.update, best=progress.best, best_update=progress.best_update
        )
        self._screen.close()
        at = f"; the model is that of update {progress.best_update:,}" if progress.best_update else ""
        self._screen.say(f"{progress.ended} after {progress.update:,} updates, {clock(progress.seconds)}{at}")


def clock(seconds: float) -> str:
    """Return a duration as text: 3 s, 2:05 min, 1:02:03 h."""
    rounded = max(0, round(seconds))
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60}:{rounded % 60:02} min"
    return f"{rounded // 3600}:{rounded // 60 % 60:02}:{rounded % 60:02} h"
