"""The plans of a run by the clock, as they were made, and a pacing that follows them instead of the clock.

What a run by the clock computes depends on the machine's speed only through its plans: the learning rates, the batch
sizes, and when it validates and ends. With these recorded it can be repeated bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from regard.training.checkpoint import Progress
from regard.training.plan import PlanStep, Schedule


@dataclass(frozen=True)
class RecordedPlan:
    steps: tuple[PlanStep, ...]  # the first one holds before there was a plan
    validations: tuple[int, ...]  # the updates after which the run validated
    updates: int  # after which it ended

    @classmethod
    def of(cls, progress: Progress) -> RecordedPlan | None:
        """Return the plans of a run that has ended; None if it did not go by the clock."""
        if not progress.plan_steps:
            return None
        validations = tuple(each.update for each in progress.scores)
        return cls(tuple(progress.plan_steps), validations, progress.update)

    def as_dict(self) -> dict[str, Any]:
        return {"updates": self.updates, "validations": self.validations, "steps": [list(step) for step in self.steps]}

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> RecordedPlan:
        """Return the plans that `as_dict` wrote; raise a ValueError, KeyError or TypeError if it did not."""
        steps = tuple(_step(*row) for row in tree["steps"])
        if not steps or not all(0 < step.batch_fraction <= 1 for step in steps):
            raise ValueError
        return cls(steps, tuple(map(int, tree["validations"])), int(tree["updates"]))

    def schedule(self, step: PlanStep) -> Schedule:
        """Return the plan of a step. It is not settled: the next step replaces it."""
        return Schedule(
            step.updates,
            self.validations,
            step.warmup,
            settled=False,
            batch_fraction=step.batch_fraction,
            peak_factor=step.peak_factor,
            validation_sources=step.validation_sources,
            canonical_from=step.canonical_from,
        )

    @property
    def first(self) -> Schedule:
        return self.schedule(self.steps[0])


def _step(
    update: int,
    validations: int,
    updates: int,
    warmup: int,
    size: float,
    peak: float,
    sources: int,
    canonical: int = 0,
) -> PlanStep:
    """Return the step of a row of JSON, which older versions wrote without its last value; raise a ValueError or
    TypeError if the values are no numbers."""
    counts = int(update), int(validations), int(updates), int(warmup)
    return PlanStep(*counts, float(size), float(peak), int(sources), int(canonical))


class RecordedPacing:
    """Plans as recorded; has the methods of `Pacing`."""

    def __init__(self, recorded: RecordedPlan) -> None:
        self._recorded = recorded
        self._steps = {(step.update, step.validations): step for step in recorded.steps}

    def _next(self, progress: Progress) -> Schedule | None:
        """Return the plan that was made where the run stands now; None if none was."""
        step = self._steps.get((progress.update, progress.validations))
        return None if step is None else self._recorded.schedule(step)

    def batch_fraction(self, progress: Progress) -> float:
        return (progress.plan or self._recorded.first).batch_fraction

    def due(self, progress: Progress) -> bool:
        return self._next(progress) not in (None, progress.plan)

    def plan(self, progress: Progress, preparing: float) -> Schedule:
        """Return the plan of the rest of the run. If batches get another size, a new epoch begins."""
        plan = self._next(progress) or progress.plan or self._recorded.first
        if plan.batch_fraction != self.batch_fraction(progress):
            progress.epoch, progress.place = progress.epoch + 1, 0
        return plan

    def time_is_up(self, progress: Progress) -> bool:
        return progress.update >= self._recorded.updates

    def validation_sources(self, plan: Schedule | None) -> int:
        return (plan or self._recorded.first).validation_sources

    def rehearse(self, progress: Progress) -> float | None:
        return None

    def timed(self, plan: Schedule, validation: float, final: float | None) -> Schedule:
        return plan
