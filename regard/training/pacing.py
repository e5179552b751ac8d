"""Plans by the clock: from what updates, validations and the final scoring take now to the rest of the run."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import torch

from regard.training.checkpoint import Progress
from regard.training.clock import Clock, fitted_batch
from regard.training.plan import RESERVE, VALIDATED, VALIDATING, Plan, Reading, by_clock
from regard.training.task import Task

FINAL_SEARCH = 5
"""where it is not measured, the final scoring takes as long a source as so many validations"""
UNKNOWN = 0.15
"""the fraction of the time that the final scoring takes, before anything is known of it"""
FITTED = 0.25
"""the fraction of a run in which the size of batches may still change"""
SHORTEST = 6
"""of a short run, validations try as many sources as let so many validations fit"""
LEAST_VALIDATED = 100
MEASURED = 0.15
"""the fraction of the time after which the final scoring is measured anew"""
MUCH, DOUBTED = 0.1, 1.4
"""the fraction of the time, and the factor to what was measured before, that the final scoring hardly takes"""
NOTICED = 1.25
"""the factor from which on updates are taken to be slower or faster than before"""


class Pacing:
    """Plans the rest of a run, whenever the clock tells more."""

    def __init__(self, task: Task, clock: Clock, device: torch.device) -> None:
        self._task, self._clock = task, clock
        self._on_cpu = device.type == "cpu"
        self._measured = 0.0
        """when the final scoring was measured"""

    @cached_property
    def smallest(self) -> float:
        """How small batches may become. On a GPU, which is hardly faster with small ones, they stay as they are."""
        return self._task.smallest if self._clock.limit is not None and self._on_cpu else 1.0

    def due(self, progress: Progress) -> bool:
        plan = progress.planned
        if plan is not None and plan.settled:
            return False
        return self._clock.due(progress.update, plan is not None, self._on_cpu)

    def time_is_up(self, progress: Progress) -> bool:
        """Is there time for no more than the final scoring, and a validation if one is due?"""
        if self._clock.limit is None:
            return False
        plan, waits = progress.planned, progress.validated < progress.update
        if plan is None:
            return self._clock.left < 0
        needed = plan.final_seconds + (plan.validation_seconds if waits else 0.0)
        return self._clock.left < needed

    def doubtful(self, plan: Plan | None, final: float) -> bool:
        """Does the final scoring seem to take so long that it may have been a busy moment? It is measured again."""
        assert self._clock.limit is not None
        known = plan.final_seconds if plan is not None else MUCH * self._clock.limit
        return final > DOUBTED * known

    def outdated(self, plan: Plan | None) -> bool:
        """Should the final scoring be measured anew? Yes after a while, since a better model says other things; and if
        updates take longer or less long than then: other programs came or went. Small differences say nothing: no two
        batches are alike."""
        if plan is None or self._clock.seconds - self._measured > MEASURED * (self._clock.limit or 0.0):
            return True
        pace = self._clock.pace / (plan.update_seconds or self._clock.pace)
        return not 1 / NOTICED < pace < NOTICED

    def validated(self, plan: Plan | None) -> int:
        """How many sources of dev a validation tries. Without a plan the time was up before one could be made."""
        if plan is not None:
            return plan.validated
        return VALIDATED if self._clock.limit is None else LEAST_VALIDATED

    def plan(self, progress: Progress, preparing: float, final: float | None = None) -> Plan:
        """Plan by how long updates take now.

        preparing   seconds that an update's share of making the epoch takes
        final       seconds that the final scoring takes, if it was just measured
        """
        assert self._clock.limit is not None
        before = self._known(progress.planned, final)
        an_update = self._clock.pace + preparing
        left = self._clock.left - RESERVE * self._clock.limit - before.final_seconds
        batch = self._batch(progress, before.batch, max(0.0, left) / an_update)
        reading = Reading(
            limit=self._clock.limit,
            left=left,
            an_update=an_update * batch / before.batch,  # until the new size is measured
            a_validation=before.validation_seconds,
            done=progress.update,
            tried=progress.validated,
        )
        return replace(
            by_clock(self._task.recipe.training, reading),
            batch=batch,
            rate=math.sqrt(batch) if self._task.recipe.model.kind == "transformer" else 1.0,
            validated=before.validated,
            validation_seconds=before.validation_seconds,
            final_seconds=before.final_seconds,
            update_seconds=before.update_seconds if batch == before.batch else 0.0,
        )

    def _known(self, plan: Plan | None, final: float | None) -> Plan:
        """The plan so far, with what the final scoring takes, if it was just measured: validations follow it."""
        self._measured = self._measured if final is None else self._clock.seconds
        if plan is None:
            return self._first(final)
        if final is not None:
            validation = plan.validation_seconds * final / plan.final_seconds
            return replace(plan, validation_seconds=validation, final_seconds=final, update_seconds=self._clock.pace)
        return replace(plan, update_seconds=plan.update_seconds or self._clock.pace)

    def _first(self, final: float | None) -> Plan:
        """What is assumed before the first validation: it takes half as long a source as the final scoring."""
        assert self._clock.limit is not None
        final = UNKNOWN * self._clock.limit if final is None else final
        a_source = 0.5 * final / len(self._task.dev)
        fit = int(VALIDATING * max(0.0, self._clock.left) / SHORTEST / a_source)
        sources = min(VALIDATED, max(LEAST_VALIDATED, fit), len(self._task.dev)) if self._on_cpu else VALIDATED
        return Plan(
            updates=0,
            validations=(),
            warmup=0,
            batch=self.smallest,
            validated=sources,
            validation_seconds=sources * a_source,
            final_seconds=final,
        )

    def _batch(self, progress: Progress, now: float, updates: float) -> float:
        """The size of batches from now on, if so many more updates of the present size fit."""
        if progress.update > FITTED * (progress.update + updates):
            return now
        wanted = fitted_batch(now, self.smallest, updates)
        return now if 0.8 < wanted / now < 1.25 else wanted

    def timed(self, plan: Plan, validation: float, final: float | None) -> Plan:
        """The plan with what a validation just took, and what the final scoring takes, if that was measured too."""
        if final is None:
            dev = len(self._task.dev)
            final = FINAL_SEARCH * validation * dev / max(1, min(plan.validated, dev))
        pace = self._clock.pace if self._clock.measured else 0.0
        self._measured = self._clock.seconds
        return replace(plan, validation_seconds=validation, final_seconds=final, update_seconds=pace)
