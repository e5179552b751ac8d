"""The plan of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.config.recipe import TrainingRecipe
from regard.training.checkpoint import Progress
from regard.training.plan import Schedule, by_clock, by_epochs

RECIPE = TrainingRecipe(
    epochs=3, learning_rate=0.01, warmup=10, decay="cosine", validations=5, scheduled_sampling=0.5, patience=0
)


def test_the_learning_rate_rises_in_a_line_and_falls_along_torchs_cosine() -> None:
    plan = Schedule.of(200, RECIPE)
    rates = [plan.learning_rate(update, RECIPE) for update in range(200)]
    assert rates[:10] == pytest.approx([0.001 * (update + 1) for update in range(10)])
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.01)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=190, eta_min=0.0001)
    for rate in rates[10:]:
        assert rate == pytest.approx(falling.get_last_lr()[0])
        optimizer.step()
        falling.step()
    assert rates[-1] < 0.0002


def test_without_decay_it_stays() -> None:
    recipe = replace(RECIPE, decay="none")
    plan = Schedule.of(100, recipe)
    assert plan.learning_rate(0, recipe) == pytest.approx(0.001)
    assert {plan.learning_rate(update, recipe) for update in range(9, 100)} == {0.01}


@given(updates=st.integers(1, 1000), validations=st.integers(1, 60), warmup=st.integers(0, 10000), decay=st.booleans())
def test_every_plan_is_sound(updates: int, validations: int, warmup: int, decay: bool) -> None:
    recipe = replace(RECIPE, validations=validations, warmup=warmup, decay="cosine" if decay else "none")
    plan = Schedule.of(updates, recipe)
    assert plan.updates == updates and plan.validations[-1] == updates
    assert list(plan.validations) == sorted(set(plan.validations)) and plan.validations[0] >= 1
    assert len(plan.validations) == max(1, min(validations, updates))
    rates = [plan.learning_rate(update, recipe) for update in range(updates)]
    assert all(0 < rate <= recipe.learning_rate for rate in rates)
    peak = rates.index(max(rates))
    assert rates[: peak + 1] == sorted(rates[: peak + 1]) and rates[peak:] == sorted(rates[peak:], reverse=True)
    shares = [plan.sampling(update, recipe) for update in range(updates)]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] <= recipe.scheduled_sampling
    assert Progress.from_json(Progress(plan=plan).to_json()).plan == plan


def test_validations_stand_at_equal_distances() -> None:
    assert Schedule.of(100, RECIPE).validations == (20, 40, 60, 80, 100)


def test_epochs_times_batches() -> None:
    assert by_epochs(RECIPE, 7).updates == 21
    assert by_epochs(replace(RECIPE, epochs=1), 1) == Schedule(1, (1,), 0, canonical_from=1)


def test_the_end_of_a_run_has_the_canonical_segmentation() -> None:
    plan = Schedule.of(200, RECIPE)
    assert [update for update in range(200) if plan.is_canonical(update)] == list(range(150, 200))
    timed = by_clock(RECIPE, 110.0, 100.0, 1.0, 0.0, 24, 0)
    assert timed.canonical_from == round(0.75 * timed.updates)
    tiny = Schedule.of(1, replace(RECIPE, canonical_segmentation=0.99))
    assert [tiny.is_canonical(update) for update in (0, 1)] == [False, True], "0 stands for never"
    for never in (replace(RECIPE, canonical_segmentation=0.0), replace(RECIPE, segmentation_dropout=0.0)):
        assert not any(Schedule.of(200, never).is_canonical(update) for update in range(400))


def test_sampling_begins_after_a_tenth_and_reaches_its_share() -> None:
    plan = Schedule.of(1000, RECIPE)
    assert plan.sampling(99, RECIPE) == 0 and plan.sampling(110, RECIPE) > 0
    assert plan.sampling(1000, RECIPE) == pytest.approx(0.5)


@given(
    left=st.floats(-100, 1e5),
    an_update=st.floats(1e-5, 20),
    a_validation=st.floats(0, 500),
    validations=st.integers(1, 100),
    done=st.integers(1, 1000),
    tried=st.integers(0, 1000),
)
def test_a_plan_by_the_clock_keeps_within_its_seconds(
    left: float, an_update: float, a_validation: float, validations: int, done: int, tried: int
) -> None:
    """Unless even one update and one validation do not fit."""
    recipe, tried = replace(RECIPE, validations=validations), min(tried, done)
    plan = by_clock(recipe, 1e5, left, an_update, a_validation, done, tried)
    assert plan.validations[-1] == plan.updates > done
    assert list(plan.validations) == sorted(set(plan.validations)) and plan.validations[0] >= done
    assert plan.validations[0] > tried and len(plan.validations) <= validations + 1
    planned = (plan.updates - done) * an_update + len(plan.validations) * a_validation
    assert planned <= left * 1.001 + 0.001 or plan.updates == done + 1
    # Validations take their part at most, unless it is the one that must be.
    since = (done - tried) * an_update
    assert len(plan.validations) == 1 or (len(plan.validations) - 1) * a_validation <= 0.2 * (left + since)
    assert Progress.from_json(Progress(plan=plan).to_json()).plan == plan


def test_a_plan_by_the_clock_uses_its_seconds() -> None:
    plan = by_clock(RECIPE, 110.0, 100.0, 0.01, 0.5, 24, 0)
    assert 98 < (plan.updates - 24) * 0.01 + len(plan.validations) * 0.5 <= 100
    assert len(plan.validations) == 5 and not plan.settled


def test_it_is_settled_towards_the_end_and_not_before_a_validation() -> None:
    assert by_clock(RECIPE, 100.0, 9.0, 0.01, 0.5, 9000, 8000).settled
    assert not by_clock(RECIPE, 100.0, 11.0, 0.01, 0.5, 9000, 8000).settled
    assert not by_clock(RECIPE, 100.0, 9.0, 0.01, 0.5, 9000, 0).settled


def test_a_smaller_batch_may_have_a_lower_learning_rate() -> None:
    plan = Schedule.of(100, RECIPE)
    rates = [each.learning_rate(50, RECIPE) for each in (plan, replace(plan, peak_factor=0.5))]
    assert rates[1] == pytest.approx(rates[0] / 2)
