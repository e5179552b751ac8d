"""The plan of a run: how many updates, how the learning rate goes, when the model is tried on dev.

It is fixed from the recipe's epochs, or follows the clock: it is made after a few updates, and made again as it becomes
known how long updates, validations and the final scoring take, until most of the run is over. Then it is settled, and
what the run computes no longer depends on how fast the machine is.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Self

from regard.config.recipe import TrainingRecipe

VALIDATED = 1000
"""at most so many sources of dev are tried at a validation"""
RESERVE = 0.03
"""the fraction of the minutes kept for what cannot be foreseen"""
VALIDATING = 0.15
"""the fraction of the time that validations may take"""
SETTLED = 0.1
"""a plan by the clock is settled when there is only this fraction of the time left for updates"""


@dataclass(frozen=True)
class Plan:
    updates: int
    validations: tuple[int, ...]
    """after which updates, the last one among them; by the clock, those still to come"""
    warmup: int
    settled: bool = True
    """False: the plan still follows the clock"""
    batch: float = 1.0
    """the size of a batch as a fraction of the recipe's"""
    rate: float = 1.0
    """the peak learning rate as a fraction of the recipe's"""
    validated: int = VALIDATED
    """at most so many sources of dev are tried at a validation"""
    validation_seconds: float = 0.0
    """what a validation takes, by the clock"""
    final_seconds: float = 0.0
    """what the final scoring will take, by the clock"""
    update_seconds: float = 0.0
    """what an update took when these two were measured; 0: it is not known, or was of other batches"""

    @classmethod
    def of(cls, updates: int, recipe: TrainingRecipe) -> Plan:
        count = max(1, min(recipe.validations, updates))
        places = sorted({round(updates * (part + 1) / count) for part in range(count)} - {0})
        return cls(updates, tuple(places), min(recipe.warmup, updates // 5))

    def learning_rate(self, update: int, recipe: TrainingRecipe) -> float:
        """Of the update with this number, counted from 0: rises in a line, then falls along a cosine to nearly 0."""
        peak = recipe.peak * self.rate
        rising = min(1.0, (update + 1) / self.warmup) if self.warmup else 1.0
        if recipe.decay == "none":
            return peak * rising
        progress = max(0, update - self.warmup) / max(1, self.updates - self.warmup)
        return peak * rising * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))

    def sampling(self, update: int, recipe: TrainingRecipe) -> float:
        """The share of the decoder's own predictions among its inputs: none in the first tenth, then rising."""
        progress = update / max(1, self.updates)
        return recipe.scheduled_sampling * max(0.0, min(1.0, (progress - 0.1) / 0.9))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, tree: dict[str, Any]) -> Self:
        return cls(**{**tree, "validations": tuple(tree["validations"])})


def by_epochs(recipe: TrainingRecipe, batches: int) -> Plan:
    """As many updates as the recipe's epochs have batches."""
    assert recipe.epochs is not None
    return Plan.of(max(1, recipe.epochs * batches), recipe)


@dataclass(frozen=True)
class Reading:
    """What the clock says in the middle of a run."""

    limit: float
    """seconds of the whole run"""
    left: float
    """seconds for updates and validations"""
    an_update: float
    """seconds an update takes"""
    a_validation: float
    """seconds a validation takes"""
    done: int
    """updates done"""
    tried: int
    """the update of the last validation; 0: there was none"""


def by_clock(recipe: TrainingRecipe, reading: Reading) -> Plan:
    """Plan as many updates as fit into the time that is left, with validations that take at most their part of it."""
    an_update, a_validation = max(reading.an_update, 1e-6), max(reading.a_validation, 1e-3)
    left, since = max(0.0, reading.left), reading.done - reading.tried
    whole = reading.done + left / an_update
    spaced = round(recipe.validations * (whole - reading.tried) / whole) if whole else 1
    count = max(1, min(spaced, int(VALIDATING * (left + since * an_update) / a_validation)))
    updates = reading.done + max(1, int((left - count * a_validation) / an_update))
    ahead = updates - reading.tried
    places = (reading.tried + round(ahead * (part + 1) / count) for part in range(count))
    return Plan(
        updates=updates,
        validations=tuple(sorted({updates, *(max(place, reading.done) for place in places if place > reading.tried)})),
        warmup=min(recipe.warmup, updates // 5),
        settled=reading.tried > 0 and reading.left < SETTLED * reading.limit,
    )
