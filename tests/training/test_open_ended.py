"""Runs that go on while dev improves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config.recipe import TrainingRecipe
from regard.tasks.train import train
from regard.tasks.translation import task as translating
from regard.training import open_ended
from regard.training import progress as reports
from regard.training.checkpoint import Progress
from regard.training.open_ended import DevScore, first_plan, is_decaying, next_plan, stalled
from regard.training.plan import Schedule
from regard.training.task import Validation
from tests.training import toy

RECIPE = TrainingRecipe(learning_rate=0.01, warmup=100)


def simulated(score: Callable[[int], float], loss: Callable[[int], float | None] = lambda _: None) -> list[Schedule]:
    """The plans of a run whose dev scores are a function of the update, up to its end."""
    plans, scores = [first_plan(RECIPE, 2000)], []  # type: list[Schedule], list[DevScore]
    for update in range(1, 1_000_000):
        if update in plans[-1].validations:
            scores.append(DevScore(update, score(update), loss(update)))
            plans.append(next_plan(plans[-1], scores, RECIPE))
        if update >= plans[-1].updates:
            return plans
    raise AssertionError("the run does not end")


def saturating(size: float) -> Callable[[int], float]:
    """A score that rises to 60 with a time constant of `size` updates."""
    return lambda update: 60 * (1 - math.exp(-update / size))


@pytest.mark.parametrize("size", [300, 3_000, 30_000])
def test_a_run_is_as_long_as_dev_improves(size: int) -> None:
    decay = simulated(saturating(size))[-1]
    assert saturating(size)(decay.decay_from) > 58.5
    assert 3 * size < decay.decay_from < 9 * size + 2000


def test_the_learning_rate_is_constant_until_dev_stalls_and_then_decays() -> None:
    plans = simulated(saturating(500))
    constant, decay = plans[:-5], plans[-1]
    for plan in constant:
        rates = [plan.learning_rate(update, RECIPE) for update in range(plan.warmup, plan.updates)]
        assert set(rates) == {0.01} and not is_decaying(plan)
    assert is_decaying(decay) and plans[-5:] == [decay] * 5  # decided once, and not changed by its validations
    rates = [decay.learning_rate(update, RECIPE) for update in range(decay.decay_from, decay.updates)]
    assert rates[0] == 0.01 and rates == sorted(rates, reverse=True) and rates[-1] < 0.0002
    assert decay.updates - decay.decay_from == round(0.3 * decay.decay_from)
    assert decay.validations[-1] == decay.updates and len(decay.validations) == 4


def test_text_has_its_canonical_segmentation_during_the_decay() -> None:
    constant, decay = (plans := simulated(saturating(500)))[0], plans[-1]
    assert not any(constant.is_canonical(update) for update in (0, constant.updates, 10**6))
    places = [update for update in range(decay.updates) if decay.is_canonical(update)]
    assert places == list(range(decay.decay_from, decay.updates))
    short = replace(RECIPE, canonical_segmentation=0.1)
    scores = [DevScore(update, 50.0, None) for update in range(200, 4001, 200)]
    plan = next_plan(first_plan(short, 2000), scores, short)
    assert (plan.decay_from, plan.updates, plan.canonical_from) == (4000, 5200, 4680)
    for never in (replace(RECIPE, canonical_segmentation=0.0), replace(RECIPE, segmentation_dropout=0.0)):
        assert next_plan(first_plan(never, 2000), scores, never).canonical_from == 0


def test_validations_are_a_constant_factor_apart() -> None:
    places = [plan.validations[0] for plan in simulated(saturating(30_000))[:-5]]
    assert places[0] == 200
    for before, after in pairwise(places):
        assert after - before == max(200, round(0.12 * before))


def test_noise_does_not_end_a_run_that_improves_and_a_crawl_does() -> None:
    rising = [DevScore(update, 10 + 5 * math.log(update) + (-1) ** number, None)
              for number, update in enumerate(range(200, 8000, 400))]  # fmt: skip
    assert not any(stalled(rising[:count]) for count in range(1, len(rising) + 1))
    crawling = [DevScore(update, 40 + update / 100_000, None) for update in range(200, 8000, 400)]
    assert stalled(crawling)


def test_before_there_is_a_score_the_loss_decides() -> None:
    def nothing(_: int) -> float:
        return 0.001

    falling = simulated(nothing, lambda update: 8 - min(update, 5000) / 1000)
    assert falling[-1].decay_from > 5000
    assert simulated(nothing, lambda _: 5.0)[-1].decay_from < 2500
    assert simulated(nothing)[-1].decay_from < 2500


@given(st.lists(st.floats(0, 100), min_size=80, max_size=80), st.integers(1, 10**6), st.integers(0, 4000))
def test_every_plan_is_sound(values: list[float], expected: int, warmup: int) -> None:
    recipe = TrainingRecipe(learning_rate=0.01, warmup=warmup)
    plan, scores = first_plan(recipe, expected), []  # type: Schedule, list[DevScore]
    for value in values:
        assert plan.validations[0] == min(plan.validations) > (scores[-1].update if scores else 0)
        assert plan.expected >= plan.updates
        assert Progress.from_json(Progress(plan=plan, scores=scores).to_json()) == Progress(plan=plan, scores=scores)
        scores.append(DevScore(plan.validations[0], value, None))
        plan = next_plan(plan, scores, recipe)
        if is_decaying(plan):
            assert 0 < plan.learning_rate(plan.updates - 1, recipe) <= 0.01
            return


def test_a_training_without_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It validates, stalls, decays, ends, and keeps the best model."""
    monkeypatch.setattr(open_ended, "MIN_INTERVAL", 2)
    scores = iter([5.0, 9.0, 20.0, 20.1, 20.0, 20.0, 20.1, 20.1, 21.0, 21.1, 20.9, 20.0, 19.0] + [0.0] * 30)
    monkeypatch.setattr(translating, "validate", lambda *_: Validation(next(scores), "", "s", {}, None, ""))
    screen, settings = toy.Watcher(), {key: value for key, value in toy.TINY.items() if key != "training.epochs"}
    train(toy.PAIRS, tmp_path / "m", settings=settings, device="cpu", screen=screen)
    end, plans = toy.end(tmp_path / "m"), [entry for entry in toy.log(tmp_path / "m") if entry["kind"] == "plan"]
    assert end["why"] == "done" and end["update"] == plans[-1]["updates"] > plans[-1]["decay_from"]
    assert end["best"] == 21.1
    assert "plan: train while dev improves" in screen.text and "dev improves no more" in screen.text


@pytest.mark.parametrize("update", [3, 8, 11])
def test_a_resumed_run_computes_the_same(update: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_ended, "MIN_INTERVAL", 2)
    monkeypatch.setattr(reports, "LOG_INTERVAL", 1)  # so that the screen sees every update
    settings: dict[str, Any] = {key: value for key, value in toy.TINY.items() if key != "training.epochs"}
    train(toy.PAIRS, tmp_path / "whole", settings=settings, device="cpu")
    with pytest.raises(KeyboardInterrupt):
        train(toy.PAIRS, tmp_path / "m", settings=settings, device="cpu", screen=toy.Watcher(interrupt_at=update))
    train(toy.PAIRS, tmp_path / "m", settings=settings, device="cpu", resume=True)
    assert toy.differing(toy.last(tmp_path / "m"), toy.last(tmp_path / "whole")) == []
    assert toy.end(tmp_path / "m")["update"] == toy.end(tmp_path / "whole")["update"]
