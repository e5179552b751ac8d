"""Runs by the clock end in time, whatever the machine does meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from regard.training.clock import MIN_UPDATES
from tests.training import toy
from tests.training.fake_time import Costs, Task, Time, run

SPEEDS = {
    "steady": lambda seconds: 1.0,
    "slower in the middle": lambda seconds: 2.0 if seconds > 20 else 1.0,
    "faster in the middle": lambda seconds: 0.5 if seconds > 20 else 1.0,
    "slower for a while": lambda seconds: 2.0 if 15 < seconds < 30 else 1.0,
}
COSTS = {
    "slow updates": Costs(0.05, 1.2, 0.004, 6.0),
    "fast updates": Costs(0.02, 0.1, 0.001, 1.5),
    "dear scoring": Costs(0.01, 0.3, 0.01, 8.0),
}


@pytest.mark.parametrize("seconds", [45.0, 60.0, 120.0])
@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("speed", SPEEDS)
def test_a_run_takes_its_time(
    speed: str, costs: str, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time(slower=SPEEDS[speed])
    task = Task(time, COSTS[costs])
    loop = run(task, seconds, tmp_path, monkeypatch)
    least = 0.85 if speed == "steady" else 0.8
    assert least * seconds <= time.now - time.began <= 1.03 * seconds + 2
    plan = loop.progress.plan
    assert plan is not None and loop.progress.best_update == loop.progress.update, "the last update is validated"
    assert loop.progress.update >= 0.9 * plan.updates, "the learning rate comes down"
    assert sum(task.tried) * task.costs.a_source < 0.3 * seconds
    assert task.canonical == sorted(task.canonical), "once text has its canonical segmentation, it stays"
    assert speed != "steady" or 0.15 < sum(task.canonical) / len(task.canonical) < 0.35


@pytest.mark.parametrize(("per_batch", "size"), [(5.0, 0.1), (0.8, pytest.approx(0.2, abs=0.1)), (0.02, 1.0)])
def test_batches_are_made_smaller_until_enough_updates_fit(
    per_batch: float, size: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """170 s of updates, of which enough should fit if they can."""
    task = Task(Time(), Costs(0.02, per_batch, 0.001, 2.0))
    loop = run(task, 200.0, tmp_path, monkeypatch)
    assert task.sizes[-1] == size == loop.progress.plan.batch_fraction  # type: ignore[union-attr]
    assert task.sizes[0] == 0.1, "the first updates are quick"
    assert loop.progress.update > 0.75 * MIN_UPDATES or size == 0.1
    changes = sum(one != other for one, other in zip(task.sizes, task.sizes[1:], strict=False))
    assert changes <= 3 and len(set(task.sizes[len(task.sizes) // 2 :])) == 1


def test_a_transformers_learning_rate_falls_with_the_root_of_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, rate in (("transformer", 0.1**0.5), ("rnn", 1.0)):
        folder = tmp_path / kind
        folder.mkdir()
        task = Task(Time(), Costs(0.02, 5.0, 0.001, 2.0), kind)
        plan = run(task, 100.0, folder, monkeypatch).progress.plan
        assert plan is not None and plan.batch_fraction == 0.1
        assert plan.peak_factor == pytest.approx(rate)
        peak = max(plan.learning_rate(update, task.recipe.training) for update in range(plan.updates))
        assert peak == pytest.approx(0.003 * rate, rel=0.02)


def test_a_batch_size_that_was_set_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(Time(), Costs(0.02, 2.0, 0.001, 2.0), smallest_batch_fraction=1.0)
    run(task, 60.0, tmp_path, monkeypatch)
    assert set(task.sizes) == {1.0}


def test_a_settled_plan_is_kept_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a resumed run computes must not depend on the clock for ever."""
    time = Time(slower=lambda seconds: 1.0 if seconds < 92 else 1.2)
    run(Task(time, COSTS["fast updates"]), 100.0, tmp_path, monkeypatch)
    plans = [entry for entry in toy.log(tmp_path) if entry["kind"] == "plan"]
    assert [plan["settled"] for plan in plans] == [False] * (len(plans) - 1) + [True]
    assert len(plans) > 5 and toy.end(tmp_path)["update"] <= plans[-1]["updates"]


def test_no_time_at_all_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time()
    task = Task(time, COSTS["slow updates"])
    loop = run(task, 1.0, tmp_path, monkeypatch)
    assert loop.progress.ended == "the time is up" and task.done == 1 and task.tried == [100]


def test_a_run_of_many_minutes_has_the_recipes_validations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(Time(), Costs(0.05, 0.5, 0.001, 1.5))
    loop = run(task, 1200.0, tmp_path, monkeypatch)
    assert loop.recipe.validations - 1 <= len(task.tried) <= loop.recipe.validations + 1
    assert set(task.tried) == {1000} and set(task.sizes[100:]) == {1.0}


@pytest.mark.parametrize("seconds", [60.0, 450.0])
def test_a_run_whose_final_scoring_cannot_be_rehearsed_takes_its_time(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU: the first validation comes early, and says what validations and the final scoring take."""
    task = Task(Time(), Costs(0.01, 0.02, 0.001, 5.0, early=4.0), smallest_batch_fraction=1.0)
    monkeypatch.setattr(task, "rehearse", lambda *_: None)
    loop = run(task, seconds, tmp_path, monkeypatch)
    assert 0.9 * seconds <= task.time.now - task.time.began <= 1.03 * seconds
    first, *others = [score.update for score in loop.progress.scores]
    assert first <= 0.2 * loop.progress.update and len(others) >= 4


def test_a_run_goes_on_if_the_final_scoring_takes_less_than_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untrained model writes long outputs, which take long to search for."""
    task = Task(Time(), Costs(0.02, 0.1, 0.02, 3.0))

    def rehearse(*_: object) -> float:
        task.time.passes(0.2)
        return 18.0 if task.done < 30 else 3.0

    monkeypatch.setattr(task, "rehearse", rehearse)
    loop = run(task, 30.0, tmp_path, monkeypatch)
    assert 0.85 * 30 <= task.time.now - task.time.began <= 1.03 * 30 + 2
    assert loop.progress.best_update == loop.progress.update and loop.progress.ended == "done"


def test_a_run_with_one_validation_has_no_early_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its model is that of its end: no other is compared with it."""
    task = Task(Time(), Costs(0.01, 0.02, 0.001, 5.0, early=4.0), smallest_batch_fraction=1.0)
    task.recipe = replace(task.recipe, training=replace(task.recipe.training, validations=1))
    monkeypatch.setattr(task, "rehearse", lambda *_: None)
    progress = run(task, 60.0, tmp_path, monkeypatch).progress
    assert [score.update for score in progress.scores] == [progress.update]


@pytest.mark.parametrize("spike", [7.0, 20.0, 30.0])
def test_a_busy_moment_does_not_end_a_run(spike: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The final scoring of 6 s seems to take 36."""
    time = Time()
    loop = run(Task(time, COSTS["slow updates"], spike=spike), 60.0, tmp_path, monkeypatch)
    assert 51 <= time.now - time.began <= 63.8 and loop.progress.ended == "done"
