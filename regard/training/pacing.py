"""Plans by the clock: from the present cost of updates, validations and the final scoring to the rest of the run."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from regard.runtime.distributed import ALONE, World
from regard.runtime.precision import Precision
from regard.training.average import averaged
from regard.training.checkpoint import Progress
from regard.training.clock import Clock, fitted_batch
from regard.training.plan import MAX_VALIDATION_SOURCES, RESERVE, VALIDATING, Schedule, by_clock
from regard.training.task import Task

FINAL_COST = 5  # where it is not measured, the final scoring of a source takes as long as so many validations of it
UNKNOWN_FINAL = 0.15  # the fraction of the time limit assumed for the final scoring before it is measured
EARLY = 0.1  # where it is not measured, the fraction of the updates after which a run first validates, to measure it
RESIZING_PERIOD = 0.25  # the fraction of a run in which the batch size may still change
MIN_VALIDATIONS = 6  # in a short run, a validation uses so few sources that this many validations fit
MIN_VALIDATION_SOURCES = 100  # sources of dev that a validation uses at least
REMEASURE_INTERVAL = 0.15  # the fraction of the time limit after which the final scoring is measured again
HIGH_FINAL, OUTLIER = 0.1, 1.4
"""a final scoring is measured again if it takes `OUTLIER` times as long as expected: as measured before, or at first
this fraction of the time limit"""
PACE_CHANGE = 1.25  # the factor from which on updates count as slower or faster than before


class Pacing:
    """Plans the rest of a run, again and again as the clock tells more.

    Of several processes the first one's clock decides; methods that depend on it must be called by all of them.
    """

    def __init__(
        self,
        task: Task,
        average: dict[str, Tensor],
        clock: Clock,
        device: torch.device,
        precision: Precision,
        world: World = ALONE,
    ) -> None:
        """`average` are the averaged weights of the task's model."""
        self._task, self._average, self._clock = task, average, clock
        self._device, self._precision, self._world = device, precision, world
        self._on_cpu = device.type == "cpu"
        self._measured = 0.0  # when the final scoring was measured; 0: it is only assumed

    def batch_fraction(self, progress: Progress) -> float:
        """Return the present batch size as a fraction of the recipe's; a run by the clock begins with the smallest."""
        return self.smallest if progress.plan is None else progress.plan.batch_fraction

    @cached_property
    def smallest(self) -> float:
        """the smallest batch size, as a fraction of the recipe's; 1 on a GPU, which is hardly faster with small ones"""
        return self._task.smallest_batch_fraction if self._clock.limit is not None and self._on_cpu else 1.0

    def due(self, progress: Progress) -> bool:
        """Return whether it is time to plan."""
        plan = progress.plan
        if self._clock.limit is None or (plan is not None and plan.settled):
            return False
        return self._world.broadcast(self._clock.due(progress.update, plan is not None, self._on_cpu))

    def time_is_up(self, progress: Progress) -> bool:
        """Return whether there is only time left for the final scoring, and for a validation if one is due."""
        if self._clock.limit is None:
            return False
        plan, unvalidated = progress.plan, progress.last_validation < progress.update
        needed = 0.0
        if plan is not None:
            needed = plan.final_seconds + (plan.validation_seconds if unvalidated else 0.0)
        return self._world.broadcast(self._clock.left < needed)

    def rehearse(self, progress: Progress) -> float | None:
        """Measure the seconds that the final scoring will take; None: unknown.

        It is measured again if it took so long that the machine may have been busy. From half of the run on, outputs
        are about as long as they will be.
        """
        assert self._clock.limit is not None
        plan = progress.plan
        trained = plan is not None and progress.update > plan.updates / 2
        expected = HIGH_FINAL * self._clock.limit if plan is None else plan.final_seconds
        with averaged(self._task.model, self._average):
            final = self._rehearsed(trained)
            if final is not None and final > OUTLIER * expected:
                again = self._rehearsed(trained)
                final = final if again is None else min(final, again)
        return final

    def _rehearsed(self, trained: bool) -> float | None:
        """Return the seconds that a sample of the final scoring, shared by all processes, takes the first one."""
        assert self._clock.limit is not None
        seconds = self._task.rehearse(self._device, self._precision, trained, self._clock.limit, self._world)
        return self._world.broadcast(seconds)

    def _outdated(self, plan: Schedule | None) -> bool:
        """Return whether the final scoring should be measured again.

        It should after a while, because the model's outputs change; and if updates became clearly slower or faster,
        because other programs came or went.
        """
        if plan is None or self._clock.seconds - self._measured > REMEASURE_INTERVAL * (self._clock.limit or 0.0):
            return True
        ratio = self._clock.pace / (plan.update_seconds or self._clock.pace)
        return not 1 / PACE_CHANGE < ratio < PACE_CHANGE

    def validation_sources(self, plan: Schedule | None) -> int:
        """Return how many sources of dev a validation uses. Without a plan the time was up before one could be made."""
        if plan is not None:
            return plan.validation_sources
        return MAX_VALIDATION_SOURCES if self._clock.limit is None else MIN_VALIDATION_SOURCES

    def plan(self, progress: Progress, preparing: float) -> Schedule:
        """Return the plan of the rest of the run. If batches get another size, a new epoch begins.

        `preparing` are the seconds per update that the preparation of the epoch takes.
        """
        before, final = self.batch_fraction(progress), None
        if self._world.broadcast(self._outdated(progress.plan)):
            with self._clock.paused_after(progress.update, self._device):
                final = self.rehearse(progress)
        plan = self._world.broadcast(self._by_pace(progress, preparing, final))
        if plan.batch_fraction != before:
            progress.epoch, progress.place = progress.epoch + 1, 0
            self._clock.clear()
        self._clock.planned_at = self._clock.seconds
        return plan

    def _by_pace(self, progress: Progress, preparing: float, final: float | None) -> Schedule:
        """Return the plan by the present pace of updates; `final`: seconds of the final scoring, if just measured."""
        assert self._clock.limit is not None
        before = self._known(progress.plan, final)
        update_seconds = self._clock.pace + preparing
        left = self._clock.left - RESERVE * self._clock.limit - before.final_seconds
        batch = self._batch(progress, before.batch_fraction, max(0.0, left) / update_seconds)
        an_update = update_seconds * batch / before.batch_fraction  # until the new size is measured
        a_validation = before.validation_seconds
        recipe, done, tried = self._task.recipe, progress.update, progress.last_validation
        plan = by_clock(recipe.training, self._clock.limit, left, an_update, a_validation, done, tried)
        validations = plan.validations
        if not self._measured and not tried and recipe.training.validations > 1:
            validations = tuple(sorted({max(done, round(EARLY * plan.updates), 1), *validations}))
        if batch != before.batch_fraction:
            before = replace(before, batch_fraction=batch, update_seconds=0.0)
        # Once text has its canonical segmentation it keeps it, even if more updates fit than expected.
        canonical = before.canonical_from if before.is_canonical(done) else plan.canonical_from
        before = replace(before, updates=plan.updates, validations=validations, warmup=plan.warmup)
        before = replace(before, canonical_from=canonical)
        return replace(before, settled=plan.settled, peak_factor=recipe.model.rate_factor(batch))

    def _known(self, plan: Schedule | None, final: float | None) -> Schedule:
        """Return the plan so far, with the new seconds of the final scoring and, in proportion, of validations."""
        self._measured = self._measured if final is None else self._clock.seconds
        if plan is None:
            return self._first(final)
        if final is not None:
            validation = plan.validation_seconds * final / plan.final_seconds
            return replace(plan, validation_seconds=validation, final_seconds=final, update_seconds=self._clock.pace)
        return replace(plan, update_seconds=plan.update_seconds or self._clock.pace)

    def _first(self, final: float | None) -> Schedule:
        """Return the costs assumed before the first validation: per source, half of those of the final scoring."""
        assert self._clock.limit is not None
        final = UNKNOWN_FINAL * self._clock.limit if final is None else final
        source_seconds = 0.5 * final / len(self._task.dev)
        fit = int(VALIDATING * max(0.0, self._clock.left) / MIN_VALIDATIONS / source_seconds)
        most, dev = MAX_VALIDATION_SOURCES, len(self._task.dev)
        sources = min(most, max(MIN_VALIDATION_SOURCES, fit), dev) if self._on_cpu else most
        known = Schedule(0, (), 0, batch_fraction=self.smallest, validation_sources=sources)
        return replace(known, validation_seconds=sources * source_seconds, final_seconds=final)

    def _batch(self, progress: Progress, now: float, updates: float) -> float:
        """Return the batch size from now on, if so many more updates of the present size fit."""
        if progress.update > RESIZING_PERIOD * (progress.update + updates):
            return now
        wanted = fitted_batch(now, self.smallest, updates)
        return now if 0.8 < wanted / now < 1.25 else wanted

    def timed(self, plan: Schedule, validation: float, final: float | None) -> Schedule:
        """Return the plan with the seconds that a validation just took, and those of the final scoring, if measured."""
        if final is None:
            dev = len(self._task.dev)
            final = FINAL_COST * validation * dev / max(1, min(plan.validation_sources, dev))
        pace = self._clock.pace if self._clock.measured else 0.0
        self._measured = self._clock.seconds
        timed = replace(plan, validation_seconds=validation, final_seconds=final, update_seconds=pace)
        return self._world.broadcast(timed)
