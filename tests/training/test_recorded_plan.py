"""A run by the clock is repeated by its recorded plans, whatever the speed of the machine."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch

from regard.training.loop import Loop, Machine
from regard.training.progress import Reporter, Silent
from regard.training.recorded_plan import RecordedPlan
from tests.training.fake_time import CPU, Costs, Task, Time, run

COSTS = {
    "batches grow": Costs(0.01, 0.1, 0.001, 2.0),
    "fast updates": Costs(0.02, 0.1, 0.001, 1.5),
    "dear scoring": Costs(0.01, 0.3, 0.01, 8.0),
}
SPEEDS = {"steady": lambda seconds: 1.0, "slower in the middle": lambda seconds: 2.0 if seconds > 20 else 1.0}


def seeded(clock: Time, costs: Costs, kind: str) -> Task:
    torch.manual_seed(1)
    return Task(clock, costs, kind)


def loop_of(task: Task, folder: Path, recorded: RecordedPlan) -> Loop:
    reporter = Reporter(folder / "log.jsonl", Silent())
    (folder / "training").mkdir(parents=True, exist_ok=True)
    return Loop(task, folder, Machine(CPU, "fp32"), reporter, None, task.time.began, recorded)  # type: ignore[arg-type]


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize(
    ("costs", "kind"), [("batches grow", "transformer"), ("fast updates", "rnn"), ("dear scoring", "rnn")]
)
def test_the_same_updates_batches_and_validations(
    speed: str, costs: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = seeded(Time(slower=SPEEDS[speed]), COSTS[costs], kind)
    before = run(first, 60.0, tmp_path, monkeypatch).progress
    recorded = RecordedPlan.of(before)
    assert recorded is not None and len(recorded.steps) > 5
    recorded = RecordedPlan.from_dict(json.loads(json.dumps(recorded.as_dict())))
    second = seeded(Time(slower=lambda seconds: 3.0), COSTS[costs], kind)
    monkeypatch.setattr(time, "monotonic", second.time)
    loop = loop_of(second, tmp_path / "again", recorded)
    loop.run()
    now = loop.progress
    assert second.sizes == first.sizes and second.tried == first.tried and second.canonical == first.canonical
    assert (now.update, now.epoch, now.place, now.ended) == (before.update, before.epoch, before.place, before.ended)
    assert now.scores == before.scores and now.waited == before.waited and not now.plan_steps
    for ours, theirs in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert ours.equal(theirs)
    if costs == "batches grow":
        assert len(set(first.sizes)) > 1, "batches changed their size"


def test_a_run_that_the_time_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine becomes so slow in the end that no plan helps."""
    first = seeded(Time(slower=lambda seconds: 1.0 if seconds < 54 else 30.0), COSTS["fast updates"], "rnn")
    before = run(first, 60.0, tmp_path, monkeypatch).progress
    assert before.ended == "the time is up"
    recorded = RecordedPlan.of(before)
    assert recorded is not None
    second = seeded(Time(), COSTS["fast updates"], "rnn")
    monkeypatch.setattr(time, "monotonic", second.time)
    loop = loop_of(second, tmp_path / "again", recorded)
    loop.run()
    assert loop.progress.update == before.update and loop.progress.scores == before.scores
    assert loop.progress.ended == "the time is up"


def test_a_run_without_a_clock_has_nothing_to_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = seeded(Time(), COSTS["fast updates"], "rnn")
    progress = run(task, None, tmp_path, monkeypatch).progress  # type: ignore[arg-type]
    assert progress.ended == "done" and RecordedPlan.of(progress) is None
