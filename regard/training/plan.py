"""The plan of a run: how many updates, how the learning rate goes, when the model is tried on dev.

It is fixed from the recipe's epochs; or from the clock, after a short trial, and once more after the first validation
(where updates are recorded, after the next ones too, until nearly all are played back), when it is known how fast
things go. Then it is kept: what a run computes never depends on how fast the machine happened to be after that.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Self

from regard.training.recipe import TrainingRecipe

TRIAL = 24
"""updates after which the clock is read, at the earliest"""
TRIAL_SHARE = 0.015
"""and not before this share of the time has gone by: a GPU takes a while to come up to speed"""
RESERVE = 0.08
"""the share of the minutes kept for what cannot be foreseen"""


@dataclass(frozen=True)
class Plan:
    updates: int
    validations: tuple[int, ...]
    """after which updates, the last one among them"""
    warmup: int
    settled: bool = True
    """False: the clock is still to be read once more"""

    @classmethod
    def of(cls, updates: int, recipe: TrainingRecipe) -> Plan:
        count = max(1, min(recipe.validations, updates))
        places = sorted({round(updates * (part + 1) / count) for part in range(count)} - {0})
        return cls(updates, tuple(places), min(recipe.warmup, updates // 5))

    def learning_rate(self, update: int, recipe: TrainingRecipe) -> float:
        """Of the update with this number, counted from 0: rises in a line, then falls along a cosine to nearly 0."""
        rising = min(1.0, (update + 1) / self.warmup) if self.warmup else 1.0
        if recipe.decay == "none":
            return recipe.peak * rising
        progress = max(0, update - self.warmup) / max(1, self.updates - self.warmup)
        return recipe.peak * rising * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))

    def sampling(self, update: int, recipe: TrainingRecipe) -> float:
        """The share of the decoder's own predictions among its inputs: none in the first tenth, then rising."""
        progress = update / max(1, self.updates)
        return recipe.scheduled_sampling * max(0.0, min(1.0, (progress - 0.1) / 0.9))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, tree: dict[str, Any]) -> Self:
        return cls(tree["updates"], tuple(tree["validations"]), tree["warmup"], tree.get("settled", True))


def by_epochs(recipe: TrainingRecipe, batches: int) -> Plan:
    """As many updates as the recipe's epochs have batches."""
    assert recipe.epochs is not None
    return Plan.of(max(1, recipe.epochs * batches), recipe)


def by_clock(
    recipe: TrainingRecipe, seconds: float, an_update: float, a_validation: float, done: int = 0, settled: bool = False
) -> Plan:
    """As many updates as fit into the seconds that are left, behind those `done`, with the validations.

    Validations take a fifth at most.
    """
    left = seconds * (1 - RESERVE)
    count = max(1, min(recipe.validations, int(0.2 * left / max(a_validation, 1e-3))))
    updates = max(TRIAL, int((left - count * a_validation) / max(an_update, 1e-6)))
    plan = Plan.of(done + updates, recipe)
    ahead = [place for place in plan.validations if place > done]
    count = min(count, len(ahead))
    kept = {ahead[round((part + 1) * len(ahead) / count) - 1] for part in range(count)}
    return Plan(plan.updates, tuple(sorted(kept)), plan.warmup, settled)
