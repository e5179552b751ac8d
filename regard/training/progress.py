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


class Screen(Protocol):
    """Where a person looks."""

    def say(self, text: str) -> None:
        """One line that stays."""

    def advance(self, done: int, total: int | None, text: str) -> None:
        """How far the run is; the last one counts."""

    def close(self) -> None:
        """No more of it."""


class Silent:
    """Nobody looks."""

    def say(self, text: str) -> None:
        pass

    def advance(self, done: int, total: int | None, text: str) -> None:
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
        self.seconds_of_updates = 0.0
        """since this start of the run"""
        self._tokens = 0
        """since then, too"""

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

    def planned(self, plan: Plan) -> None:
        self.note("plan", **plan.as_dict())
        self._screen.say(f"plan: {plan.updates:,} updates, {len(plan.validations)} validations")

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
        self.seconds_of_updates += seconds
        self._losses.append(loss)
        if progress.update % LOGGED and progress.update > 3:
            return
        before = time.monotonic()
        mean = self.loss  # on a GPU it is waited for, and for all updates before
        waited = time.monotonic() - before
        self._recent[-1] = tokens, seconds + waited
        self.seconds_of_updates += waited
        speed = sum(count for count, _ in self._recent) / max(1e-9, sum(spent for _, spent in self._recent))
        self.note(
            "update",
            update=progress.update,
            epoch=progress.epoch,
            loss=round(mean, 4),
            tokens=self._tokens,
            tokens_per_second=round(speed),
            seconds=round(since, 2),
        )
        known = plan.updates if progress.plan is not None else None
        left = "" if known is None else f"  {clock((known - progress.update) * self.seconds_an_update)} left"
        self._screen.advance(progress.update, known, f"loss {mean:.3f}  {speed:,.0f} tokens/s{left}")

    def validation(self, progress: Progress, found: Validation, better: bool) -> None:
        self.note(
            "validation",
            update=progress.update,
            epoch=progress.epoch,
            score=round(found.score, 3),
            best=better,
            loss=round(self.loss, 4),
            seconds=round(progress.seconds, 2),
            **found.facts,
        )
        mark = "  best so far" if better else ""
        self._screen.say(f"update {progress.update:,}: {found.told}, loss {self.loss:.3f}{mark}")
        self._screen.say(f"    {found.example}")
        if found.warning:
            self.say(found.warning)

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
