"""What a run tells: everything as JSON lines in the model's folder, and what a person wants to see on a screen."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from regard.training.checkpoint import Progress
from regard.training.plan import Plan
from regard.training.task import Validation

LOGGED = 50
"""updates between two entries of the log"""
WINDOW = 100
"""updates over which speed and loss are averaged"""
SHOWN_SECONDS = 0.2
"""between two updates that the screen is told of, if they are not logged"""
TOLD_CHANGE = 0.1
"""by how much the number of planned updates must change for the screen to be told"""


class Screen(Protocol):
    """Where a person looks."""

    def say(self, text: str) -> None:
        """One line that stays."""

    def advance(self, done: int, total: int | None, text: str) -> None:
        """How far the run is; the last one counts."""

    def status(self, text: str) -> None:
        """What goes on beside updates, such as reading; the next `advance` takes its place."""

    def close(self) -> None:
        """No more of it."""


class Silent:
    """Nobody looks."""

    def say(self, text: str) -> None:
        pass

    def advance(self, done: int, total: int | None, text: str) -> None:
        pass

    def status(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class Reporter:
    """Keeps the log, and tells the screen."""

    def __init__(self, log: Path, screen: Screen) -> None:
        self._log, self._screen = log, screen
        self._recent: deque[tuple[int, float]] = deque(maxlen=WINDOW)
        self._losses: list[Tensor] = []
        self._loss = 0.0
        self._tokens = 0
        """since this start of the run"""
        self._shown = 0.0
        """when the screen was told last"""
        self._planned: Plan | None = None
        """the plan that the screen was told"""

    # The log

    @property
    def position(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0

    def rewind(self, position: int) -> None:
        """Forget what was logged after a checkpoint: it will happen again."""
        if self.position > position:
            with self._log.open("r+b") as file:
                file.truncate(position)

    def note(self, kind: str, **facts: Any) -> None:
        # NaN, which a diverging run may have, is no JSON.
        known = {
            key: None if isinstance(fact, float) and not math.isfinite(fact) else fact for key, fact in facts.items()
        }
        entry = {"kind": kind, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **known}
        # Names of files need not be UTF-8; the escapes of what is not are JSON's own.
        with self._log.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    # What happens

    def say(self, text: str) -> None:
        self.note("said", text=text)
        self._screen.say(text)

    def status(self, text: str) -> None:
        """Show what goes on now, such as a validation."""
        self._screen.status(text)

    def planned(self, plan: Plan) -> None:
        """Note a plan; one that follows the clock is shown when it changes much."""
        self.note("plan", **plan.as_dict())
        shown = self._planned
        if shown and shown.batch == plan.batch and abs(plan.updates / shown.updates - 1) < TOLD_CHANGE:
            return
        self._planned = plan
        size = "" if plan.batch == 1 else f", batches of {plan.batch:.0%} of the recipe's size to fit the clock"
        about = "" if plan.settled else "about "
        self._screen.say(f"plan: {about}{plan.updates:,} updates, {len(plan.validations)} validations{size}")

    @property
    def seconds_an_update(self) -> float:
        """Of the last updates; the first ones of a run, which warm up, are left out."""
        steady = list(self._recent)[len(self._recent) // 2 :]
        return sum(seconds for _, seconds in steady) / len(steady)

    @property
    def loss(self) -> float:
        """The mean over the updates since it was last asked for."""
        if self._losses:
            self._loss = float(sum(self._losses) / len(self._losses))
            self._losses.clear()
        return self._loss

    def update(self, progress: Progress, plan: Plan, loss: Tensor, tokens: int, seconds: float, since: float) -> None:
        self._recent.append((tokens, seconds))
        self._tokens += tokens
        self._losses.append(loss)
        if progress.update % LOGGED and progress.update > 3:
            if time.monotonic() - self._shown >= SHOWN_SECONDS:
                # On a GPU the loss would have to be waited for: the one of before is shown again.
                self._show(progress, plan, self._loss if loss.is_cuda else float(loss))
            return
        before = time.monotonic()
        mean = self.loss  # on a GPU it is waited for, and for all updates before
        self._recent[-1] = tokens, seconds + time.monotonic() - before
        self.note(
            "update",
            update=progress.update,
            epoch=progress.epoch,
            loss=round(mean, 4),
            tokens=self._tokens,
            tokens_per_second=round(self._speed),
            seconds=round(since, 2),
        )
        self._show(progress, plan, mean)

    @property
    def _speed(self) -> float:
        """Target tokens a second, over the last updates."""
        return sum(count for count, _ in self._recent) / max(1e-9, sum(spent for _, spent in self._recent))

    def _show(self, progress: Progress, plan: Plan, loss: float) -> None:
        """Move the bar on the screen."""
        self._shown = time.monotonic()
        known = plan.updates if progress.plan is not None else None
        left = "" if known is None else f"  {clock((known - progress.update) * self.seconds_an_update)} left"
        self._screen.advance(progress.update, known, f"loss {loss:.3f}  {self._speed:,.0f} tokens/s{left}")

    def validation(self, progress: Progress, found: Validation, better: bool) -> None:
        self.note(
            "validation",
            update=progress.update,
            epoch=progress.epoch,
            score=round(found.score, 3),
            best=better,
            loss=round(self.loss, 4),
            dev_loss=None if found.loss is None else round(found.loss, 4),
            seconds=round(progress.seconds, 2),
            **found.facts,
        )
        mark = "  best so far" if better else ""
        self._screen.say(f"update {progress.update:,}: {found.told}, loss {self.loss:.3f}{mark}")
        self._screen.say(f"    {found.example}")

    def ended(self, progress: Progress) -> None:
        self.note(
            "end", why=progress.ended, update=progress.update, best=progress.best, best_update=progress.best_update
        )
        self._screen.close()
        at = f"; the model is that of update {progress.best_update:,}" if progress.best_update else ""
        self._screen.say(f"{progress.ended} after {progress.update:,} updates, {clock(progress.seconds)}{at}")


def clock(seconds: float) -> str:
    """3 s, 2:05 min, 1:02:03 h"""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02} h"
