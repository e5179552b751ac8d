"""How long a comparison will take, and what it shows of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from regard.experiments.compare import progress
from regard.experiments.compare.progress import ComparisonProgress, seconds_left


class Lines:
    def __init__(self) -> None:
        self.messages: list[str] = []
        self.shown: list[str] = []

    def say(self, text: str) -> None:
        self.messages.append(text)

    def show(self, lines: Sequence[str]) -> None:
        self.shown = list(lines)

    def close(self) -> None: ...


def run(name: str, seconds: float) -> Any:
    job = SimpleNamespace(name=name)
    return SimpleNamespace(job=job, seconds=seconds, fraction=0.5, activity="loss 2.0")


@pytest.mark.parametrize(
    ("active", "waiting", "at_once", "left"),
    [([0.0], 0, 1, 100.0), ([40.0], 1, 1, 160.0), ([40.0, 10.0], 2, 2, 190.0), ([150.0], 0, 1, 0.0), ([], 3, 2, 200.0)],
)
def test_seconds_left(active: list[float], waiting: int, at_once: int, left: float) -> None:
    assert seconds_left(active, waiting, 100.0, at_once) == left


def test_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOWN_SECONDS", 0.0)
    lines = Lines()
    shown = ComparisonProgress(lines, total=12, done=2, at_once=2, minutes=3.0)
    shown.watch([run("rnn, seed 1", 15.0), run("transformer, seed 1", 15.0)], 8)
    assert lines.shown == [
        "rnn, seed 1:  50%  loss 2.0",
        "transformer, seed 1:  50%  loss 2.0",
        "runs 3 to 4 of 12, about 16 minutes left",
    ]
    shown.ended(run("rnn, seed 1", 65.0), None)
    shown.ended(run("transformer, seed 1", 9.0), "out of memory")
    assert lines.messages == [
        "run 3 of 12: rnn, seed 1: done in 1:05 min",
        "run 4 of 12: transformer, seed 1: failed: out of memory",
    ]
    shown.watch([run("rnn, seed 2", 5.0)], 0)
    assert lines.shown[-1] == "run 5 of 12, about a minute left"


def test_without_a_limit_nothing_is_known_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOWN_SECONDS", 0.0)
    lines = Lines()
    ComparisonProgress(lines, 1, 0, 1, None).watch([run("rnn, seed 1", 5.0)], 0)
    assert lines.shown[-1] == "run 1 of 1"
