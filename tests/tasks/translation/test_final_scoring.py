"""A run by the clock scores as much of dev as fits into its time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from regard.metrics.translation import group
from regard.tasks.registry import TRANSLATION
from regard.tasks.spec import TimeLimit
from regard.tasks.translation import final_scoring
from regard.tasks.translation import task as task_module
from regard.tasks.translation.final_scoring import FinalResults, ScoringEffort, final_results, sources_in_time
from regard.tasks.translation.task import MAX_SCORING, MIN_REHEARSED, TranslationTask
from regard.text.pairs import Pair
from tests.tasks.small import small
from tests.training import toy

DEV = [Pair(f"{source} {number}", target, 1) for number in range(4) for source, target in toy.PAIRS]
SOURCES, REFERENCES = group(DEV)


class SlowScoring:
    """Takes so many seconds for each character of a source, by a clock of its own."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.calls = seconds, 0.0, 0

    def __call__(self, translator: Any, sources: Sequence[str], *_: Any) -> FinalResults | None:
        self.now, self.calls = self.now + self.seconds * sum(map(len, sources)), self.calls + 1
        return None

    def monotonic(self) -> float:
        return self.now


def fitting(cost: float, left: float, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the sources that are scored if all of them take `cost` seconds."""
    slow = SlowScoring(cost / sum(map(len, SOURCES)))
    monkeypatch.setattr(final_scoring, "final_results", slow)
    monkeypatch.setattr(final_scoring, "time", slow)
    translator: Any = None
    return sources_in_time(translator, SOURCES, REFERENCES, 60.0, left)


def test_all_of_dev_is_scored_if_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(SOURCES) >= 4 * final_scoring.TRIAL
    assert fitting(10.0, 20.0, monkeypatch) == len(SOURCES)
    assert fitting(10.0, 11.0, monkeypatch) == len(SOURCES), "the trial may be wrong by a little"


def test_what_does_not_fit_is_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = final_scoring.TRIAL / len(SOURCES)
    expected = (20.0 - 100.0 * trial) / 100.0 * len(SOURCES)
    assert fitting(100.0, 20.0, monkeypatch) == pytest.approx(expected, rel=0.1)
    assert fitting(1000.0, 5.0, monkeypatch) == final_scoring.TRIAL, "a few are always scored"


def test_few_sources_are_scored_without_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowScoring(1.0)
    monkeypatch.setattr(final_scoring, "final_results", slow)
    few = 4 * final_scoring.TRIAL - 1
    translator: Any = None
    assert sources_in_time(translator, SOURCES[:few], REFERENCES[:few], 60.0, 1.0) == few and not slow.calls


def test_calibration_ends_at_the_deadline(tmp_path: Path) -> None:
    model = small(tmp_path / "model", settings=toy.LEARNS | {"training.epochs": 10})
    sources, references = group(toy.pairs(40))
    everything = final_results(model, sources, references, ScoringEffort(calibrated=40)).confidence
    in_time = ScoringEffort(calibrated=40, deadline=time.monotonic() + 1000)
    again = final_results(model, sources, references, in_time).confidence
    late = final_results(model, sources, references, replace(in_time, deadline=time.monotonic())).confidence
    assert everything is not None and again is not None and late is not None
    assert everything["sources"] == again["sources"] == 40
    assert again["word"]["weights"] == pytest.approx(everything["word"]["weights"], abs=1e-3), "by chunks, the same"
    assert late["sources"] == final_scoring.CALIBRATED_AT_ONCE, "a few are always calibrated"


def test_a_run_says_how_many_sources_are_scored(tmp_path: Path) -> None:
    model = small(tmp_path / "model")
    lines: list[str] = []
    with patch("regard.tasks.translation.spec.sources_in_time", return_value=10):
        scores = TRANSLATION.score(model, DEV, lines.append, TimeLimit(6.0, 1.0))
        assert scores.sources == 10 and lines[0].startswith("time is short: 10 of ")
        assert TRANSLATION.score(model, DEV, lines.append, TimeLimit(6.0, None)).sources > 10, "no clock is asked"


def test_a_rehearsal_takes_little_of_the_time_and_expects_no_more_than_may_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small(tmp_path / "model").recipe
    task = TranslationTask.of(toy.pairs(80), DEV, recipe, 1)
    counts: list[int] = []

    def counted(translator: Any, sources: Sequence[str], *rest: Any) -> FinalResults:
        counts.append(len(sources))
        return final_results(translator, sources, *rest)

    monkeypatch.setattr(task_module, "final_results", counted)
    cpu = torch.device("cpu")
    short = task.rehearse(cpu, "fp32", False, 0.001)
    assert counts == [MIN_REHEARSED] and short == pytest.approx(MAX_SCORING * 0.001)
    counts.clear()
    long = task.rehearse(cpu, "fp32", False, 1e6)
    assert counts[0] == MIN_REHEARSED < counts[1] and long is not None and long < 1000
