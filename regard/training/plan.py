"""The plan of a run: the number of updates, the learning rate schedule, and when to validate on dev.

It follows from the recipe's epochs, from the clock, or from the scores on dev (open_ended.py). By the clock, it is made
after a few updates, and again as it becomes known how long updates, validations and the final scoring take, until most
of the run is over. Then the plan is settled, and what the run computes no longer depends on the speed of the machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from regard.config.recipe import TrainingRecipe

MAX_VALIDATION_SOURCES = 1000  # sources of dev that a validation uses at most
RESERVE = 0.03  # the fraction of the time limit reserved for what cannot be foreseen
VALIDATING = 0.15  # the fraction of the time that validations may take
SETTLED = 0.1  # a plan by the clock is settled when only this fraction of the time limit is left for updates


@dataclass(frozen=True)
class Schedule:
    updates: int
    validations: tuple[int, ...]  # the updates after which to validate; by the clock, only those still to come
    warmup: int
    expected: int = 0  # while dev decides the length: the updates after which the run is expected to end; else 0
    decay_from: int = 0  # the update from which on the learning rate decays, if that is later than the warm-up's end
    canonical_from: int = 0  # the update from which on text has its canonical segmentation; 0: never
    settled: bool = True  # False: the plan still follows the clock
    batch_fraction: float = 1.0  # the size of a batch as a fraction of the recipe's
    peak_factor: float = 1.0  # the peak learning rate as a fraction of the recipe's
    validation_sources: int = MAX_VALIDATION_SOURCES  # sources of dev that a validation uses at most
    validation_seconds: float = 0.0  # by the clock: the seconds of a validation
    final_seconds: float = 0.0  # by the clock: the seconds that the final scoring will take
    update_seconds: float = 0.0  # per update, when these two were measured; 0: unknown, or of another batch size

    @classmethod
    def of(cls, updates: int, recipe: TrainingRecipe) -> Schedule:
        """Return the plan of so many updates, with the recipe's validations at equal distances."""
        count = max(1, min(recipe.validations, updates))
        places = sorted({round(updates * (part + 1) / count) for part in range(count)} - {0})
        canonical = canonical_from(updates, recipe)
        return cls(updates, tuple(places), min(recipe.warmup, updates // 5), canonical_from=canonical)

    def is_canonical(self, update: int) -> bool:
        """Return whether text has its canonical segmentation in an update, counted from 0."""
        return 0 < self.canonical_from <= update

    def learning_rate(self, update: int, recipe: TrainingRecipe) -> float:
        """Return the learning rate of an update, counted from 0: linear warm-up, constant until `decay_from`, then
        cosine decay to nearly 0."""
        peak = recipe.peak_learning_rate * self.peak_factor
        rising = min(1.0, (update + 1) / self.warmup) if self.warmup else 1.0
        if recipe.decay == "none":
            return peak * rising
        begin = max(self.warmup, self.decay_from)
        progress = max(0, update - begin) / max(1, self.updates - begin)
        return peak * rising * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))

    def sampling(self, update: int, recipe: TrainingRecipe) -> float:
        """Return the fraction of scheduled sampling: 0 in the first tenth of the run, then rising linearly."""
        progress = update / max(1, self.expected or self.updates)
        return recipe.scheduled_sampling * max(0.0, min(1.0, (progress - 0.1) / 0.9))


class EpochForm(NamedTuple):
    """How the batches of an epoch are made."""

    batch_fraction: float = 1.0  # the size of a batch as a fraction of the recipe's
    canonical: bool = False  # whether text has its canonical segmentation


class PlanStep(NamedTuple):
    """A plan by the clock, as far as it decides what the run computes, and where the run stood when it was made."""

    update: int
    validations: int  # how many there had been
    updates: int
    warmup: int
    batch_fraction: float
    peak_factor: float
    validation_sources: int
    canonical_from: int = 0

    @classmethod
    def of(cls, plan: Schedule, update: int, validations: int) -> PlanStep:
        size, peak = plan.batch_fraction, plan.peak_factor
        sources, canonical = plan.validation_sources, plan.canonical_from
        return cls(update, validations, plan.updates, plan.warmup, size, peak, sources, canonical)


def canonical_from(updates: int, recipe: TrainingRecipe) -> int:
    """Return the update from which on a run of so many has the canonical segmentation; 0: it has it always or never."""
    fraction = recipe.canonical_segmentation if recipe.segmentation_dropout else 0.0
    return max(1, round((1 - fraction) * updates)) if fraction else 0


def by_epochs(recipe: TrainingRecipe, batches: int) -> Schedule:
    """Return the plan for the recipe's epochs of so many batches each."""
    assert recipe.epochs is not None
    return Schedule.of(max(1, recipe.epochs * batches), recipe)


def by_clock(
    recipe: TrainingRecipe, limit: float, left: float, an_update: float, a_validation: float, done: int, tried: int
) -> Schedule:
    """Return a plan of as many updates as fit into the time left, with validations that take at most their part of it.

    limit, left               seconds of the whole run, and seconds left for updates and validations
    an_update, a_validation   seconds that one of them takes
    done, tried               updates done, and the update of the last validation; 0: there was none

    Validations are at equal distances from the last one on.
    """
    update_seconds, validation_seconds = max(an_update, 1e-6), max(a_validation, 1e-3)
    left, since = max(0.0, left), done - tried
    total = done + left / update_seconds  # updates, if there were no validations
    spaced = round(recipe.validations * (total - tried) / total) if total else 1
    count = max(1, min(spaced, int(VALIDATING * (left + since * update_seconds) / validation_seconds)))
    updates = done + max(1, int((left - count * validation_seconds) / update_seconds))
    ahead = updates - tried
    places = (tried + round(ahead * (part + 1) / count) for part in range(count))
    return Schedule(
        updates=updates,
        validations=tuple(sorted({updates, *(max(place, done) for place in places if place > tried)})),
        warmup=min(recipe.warmup, updates // 5),
        canonical_from=canonical_from(updates, recipe),
        settled=tried > 0 and left < SETTLED * limit,
    )
