"""Training for as long as dev improves: the schedule of a run whose length is not known in advance.

    warm-up → constant learning rate, until dev stalls → cosine decay to nearly 0, a fraction of the run so far → end

(warm-up, stable, decay: Hu et al. 2024.) During the decay, text has its canonical segmentation. Models are compared by
the moving average of their weights, so that scores mean something while the learning rate is high. Validations come at
distances that grow with the run: a constant factor apart. All of this depends on the numbers of updates and the scores
only, not on the clock, so that a resumed run computes the same as one that was not interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from regard.config.recipe import TrainingRecipe
from regard.training.plan import Schedule, canonical_from

GROWTH = 0.12  # the distance to the next validation, as a fraction of the updates so far
MIN_INTERVAL = 200  # updates between two validations at least
HORIZON = 0.3  # dev stalls if it gained too little over this fraction of the run so far
MIN_GAIN = 0.3  # points of the score on dev, below which the gain is too little
MIN_LOSS_GAIN = 0.01  # the same as a fraction of the loss on dev, which decides as long as there is no score
MIN_VALIDATIONS = 6  # before which dev does not count as stalled
DECAY = 0.3  # the length of the decay, as a fraction of the updates before it
DECAY_VALIDATIONS = 4


class DevScore(NamedTuple):
    """The result of a validation."""

    update: int
    score: float
    loss: float | None


def first_plan(recipe: TrainingRecipe, expected: int) -> Schedule:
    """Return the plan up to the first validation, of a run that will take about `expected` updates."""
    warmup = min(recipe.warmup, max(1, expected // 5))
    return _until(max(1, min(max(MIN_INTERVAL, warmup), expected)), Schedule(0, (), warmup, expected))


def next_plan(plan: Schedule, scores: Sequence[DevScore], recipe: TrainingRecipe) -> Schedule:
    """Return the plan after a validation: up to the next one, or to the end of the decay if dev stalls.

    A plan that decays is final.
    """
    if is_decaying(plan):
        return plan
    update = scores[-1].update
    if stalled(scores):
        updates = update + max(1, round(DECAY * update))
        places = {update + round((updates - update) * part / DECAY_VALIDATIONS) for part in range(1, DECAY_VALIDATIONS)}
        canonical = canonical_from(updates, recipe)
        return replace(
            plan,
            updates=updates,
            expected=updates,
            decay_from=update,
            canonical_from=max(update, canonical) if canonical else 0,
            validations=(*sorted(places), updates),
        )
    return _until(update + max(MIN_INTERVAL, round(GROWTH * update)), plan)


def is_decaying(plan: Schedule) -> bool:
    """Return whether the learning rate of an open-ended plan has begun to decay."""
    return plan.updates > plan.decay_from


def stalled(scores: Sequence[DevScore]) -> bool:
    """Return whether the best score, or before there is any the lowest loss, hardly improved over the last part of the
    run."""
    last = scores[-1].update
    before = [each for each in scores if each.update <= (1 - HORIZON) * last]
    if len(scores) < MIN_VALIDATIONS or not before:
        return False
    gain = max(each.score for each in scores) - max(each.score for each in before)
    if gain >= MIN_GAIN:
        return False
    return max(each.score for each in scores) >= 1.0 or not _loss_falls(scores, before)


def _loss_falls(scores: Sequence[DevScore], before: Sequence[DevScore]) -> bool:
    """Return whether the lowest loss of all is clearly lower than that before."""
    lowest, earlier = (
        min((each.loss for each in some if each.loss is not None), default=0.0) for some in (scores, before)
    )
    return lowest < (1 - MIN_LOSS_GAIN) * earlier


def _until(validation: int, plan: Schedule) -> Schedule:
    """Return the plan of a constant learning rate up to the next validation."""
    expected = max(plan.expected, round((1 + DECAY) * validation))
    return replace(plan, updates=validation, decay_from=validation, validations=(validation,), expected=expected)
