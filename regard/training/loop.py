"""The training loop: updates, the moving average of the weights, and validations and checkpoints by plan."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.config import folder as folders
from regard.runtime.precision import Precision, autocast, tf32_products
from regard.training import checkpoint
from regard.training.checkpoint import Progress
from regard.training.clock import Clock
from regard.training.graph_capture import CapturedUpdate
from regard.training.interrupts import deferred_interrupt
from regard.training.pacing import Pacing
from regard.training.plan import Schedule, by_epochs
from regard.training.prefetch import prefetching
from regard.training.progress import LOG_INTERVAL, Reporter
from regard.training.task import MakeBatch, Task, Validation
from regard.training.updating import DivergedError, Update

AVERAGE_INTERVAL = 8
"""updates between two updates of the moving average"""
CHECK_INTERVAL = 10
"""updates on a GPU between two checks for a NaN loss, each of which synchronizes with the GPU"""
CHECKPOINT_SECONDS = 110.0
"""seconds between two checkpoints, besides those of validations"""
ADVICE = "try more data, more epochs or a higher training.learning_rate"


@dataclass(frozen=True)
class Machine:
    device: torch.device
    precision: Precision


class Loop:
    """One training run, from where `progress` stands to its end."""

    def __init__(
        self,
        task: Task,
        folder: Path,
        machine: Machine,
        reporter: Reporter,
        seconds: float | None,
        began: float | None = None,
    ) -> None:
        """`seconds` may pass since the run `began`, by `time.monotonic`; None: now."""
        self.task, self.folder, self.machine, self.reporter = task, folder, machine, reporter
        self.clock = Clock(seconds, began)
        self._pacing = Pacing(task, self.clock, machine.device)
        self.recipe = task.recipe.training
        self.model = task.model.to(machine.device).train()
        self._update = self._build_update()
        self.average = {name: tensor.detach().clone() for name, tensor in self.model.named_parameters()}
        self.progress = Progress()
        self._written = time.monotonic()
        self._consistent = True
        """False in the middle of an update, when model and progress do not fit together"""
        self._stop = False
        """whether to stop after this update"""
        self._executor = ThreadPoolExecutor(1)
        self._next_epoch: tuple[int, Future[Sequence[MakeBatch]]] | None = None
        """the number of the next epoch, and its batches, which another thread prepares"""
        self._preparation = 0.0
        """seconds per update that the preparation of the epoch took"""

    def _build_update(self) -> Update | CapturedUpdate:
        device = self.machine.device
        update = Update(self.task, device, self.machine.precision)
        return CapturedUpdate(update) if self.task.can_capture(device) else update

    # Checkpoints

    @property
    def training_folder(self) -> Path:
        return self.folder / folders.TRAINING

    def resume(self) -> None:
        self.progress = checkpoint.read(self.training_folder, self.model, self.average, self._update.optimizer)
        self.reporter.rewind(self.progress.log_bytes)
        self.clock.began = time.monotonic() - self.progress.seconds

    def save(self) -> None:
        self.progress.seconds = self.seconds
        self.progress.log_bytes = self.reporter.position
        checkpoint.write(self.training_folder, self.model, self.average, self._update.optimizer, self.progress)
        self._written = time.monotonic()

    def save_model(self) -> None:
        """Save the averaged weights as the model."""
        folders.write_weights(self.folder, self.average)

    @property
    def seconds(self) -> float:
        return self.clock.seconds

    @property
    def _batch_size(self) -> float:
        """the batch size as a fraction of the recipe's; a run by the clock begins with the smallest"""
        plan = self.progress.planned
        return self._pacing.smallest if plan is None else plan.batch

    # The run

    def run(self) -> None:
        """Train to the end of the plan, of the time or of patience; save a checkpoint if interrupted."""
        progress = self.progress
        if progress.plan is None and self.clock.limit is None:
            self._set_plan(by_epochs(self.recipe, self.task.updates()))
        try:
            device = self.machine.device
            with (
                deferred_interrupt(self._stop_soon),
                tf32_products(self.machine.precision, device),
                prefetching(device),
            ):
                if progress.update and not progress.ended:
                    self._between_updates()  # what was due when the run was interrupted
                while not progress.ended:
                    self._epoch()
            if self._stop:  # Ctrl-C came after the last update
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            self._interrupted()
            raise
        except DivergedError:
            self._end("diverged: the loss became NaN; try a lower training.learning_rate")
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _stop_soon(self) -> None:
        self._stop = True

    def _interrupted(self) -> None:
        self.reporter.say("interrupted: what was learned so far is kept; go on with --resume")
        if not self._consistent:  # in the middle of an update: the last checkpoint counts
            return
        self.save()

    def _epoch(self) -> None:
        progress, size = self.progress, self._batch_size
        began = time.monotonic()
        with self.clock.paused():
            batches = self._batches(progress.epoch, size)
        self._preparation = (time.monotonic() - began) / len(batches)
        for make in batches[progress.place :]:
            began = time.monotonic()
            self.update(make(self.machine.device), began, last=progress.place + 1 == len(batches))
            self._between_updates()
            if self._stop:
                raise KeyboardInterrupt
            if progress.ended or self._batch_size != size:
                return

    def _batches(self, epoch: int, size: float) -> Sequence[MakeBatch]:
        """Return the batches of the epoch. On a GPU, which leaves the CPU free, another thread prepares those of the
        next epoch meanwhile."""
        prepared, self._next_epoch = self._next_epoch, None
        batches = self.task.epoch(epoch, size) if prepared is None or prepared[0] != epoch else prepared[1].result()
        plan, last = self.progress.planned, self.progress.update + len(batches) - self.progress.place
        if self.machine.device.type == "cuda" and (plan is None or last < plan.updates):
            self._next_epoch = epoch + 1, self._executor.submit(self.task.epoch, epoch + 1, size)
        return batches

    def update(self, batch: Any, began: float, last: bool = False) -> None:
        """Run one update. `began`: when the making of the batch began; `last`: whether it is the epoch's last batch."""
        progress, recipe = self.progress, self.recipe
        plan = progress.planned or Schedule(10**9, (), recipe.warmup)
        self._consistent = False
        self._update.rate(plan.learning_rate(progress.update, recipe))
        loss = self._update(batch, progress)
        if loss.is_cuda and progress.update % CHECK_INTERVAL == 0 and not bool(loss.isfinite()):
            raise DivergedError
        progress.update += 1
        progress.epoch, progress.place = (progress.epoch + 1, 0) if last else (progress.epoch, progress.place + 1)
        self._take_average()
        self._consistent = True
        self.reporter.update(progress, plan, loss, batch.tokens, time.monotonic() - began, self.seconds)
        if not loss.is_cuda or progress.update % LOG_INTERVAL == 0:  # the log has just synchronized with the GPU
            self.clock.tick(progress.update)

    def _take_average(self) -> None:
        """Update the moving average of the weights; its decay rises to the recipe's over the first updates."""
        if self.progress.update % AVERAGE_INTERVAL and self.recipe.average:
            return
        count = self.progress.update / AVERAGE_INTERVAL
        decay = min(self.recipe.average**AVERAGE_INTERVAL, (1 + count) / (10 + count)) if self.recipe.average else 0.0
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.values()), list(self.model.parameters()), 1 - decay)

    # Between updates

    def _between_updates(self) -> None:
        """Do what is due: plan, validate, end the run, or save a checkpoint."""
        progress = self.progress
        if self._pacing.due(progress):
            self._plan_by_clock()
        plan = progress.planned
        time_is_up = self._pacing.time_is_up(progress)
        if progress.validated < progress.update and ((plan and progress.update in plan.validations) or time_is_up):
            self._validate()
            plan = progress.planned
        if self.recipe.patience and progress.waited >= self.recipe.patience:
            self._end(f"no better for {progress.waited} validations")
        elif plan is not None and progress.update >= plan.updates:
            self._end("done")
        elif time_is_up:
            self._end("the time is up")
        elif time.monotonic() - self._written > CHECKPOINT_SECONDS:
            self._synchronize()
            with self.clock.paused():
                self.save()

    def _plan_by_clock(self) -> None:
        progress, before, final = self.progress, self._batch_size, None
        if self._pacing.outdated(progress.planned):
            self._synchronize()
            with self.clock.paused(), self._averaged():
                final = self._rehearse()
        plan = self._pacing.plan(progress, self._preparation, final)
        if plan.batch != before:
            progress.epoch, progress.place = progress.epoch + 1, 0
            self.clock.clear()
        self._set_plan(plan)
        self.clock.was_read()

    def _set_plan(self, plan: Schedule) -> None:
        self.progress.plan = plan.as_dict()
        self.reporter.planned(plan)
        if plan.settled:  # a resumed run can make any other plan again
            with self.clock.paused():
                self.save()

    def _validate(self) -> None:
        progress, plan = self.progress, self.progress.planned
        self._synchronize()
        began = time.monotonic()
        with self.clock.paused():
            validation, final = self._validate_average(self._pacing.validated(plan))
            self._record(validation)
            self.save()
        if plan is not None and not plan.settled:
            progress.plan = self._pacing.timed(plan, time.monotonic() - began, final).as_dict()
            if self.clock.measured and progress.update < plan.updates:
                self._plan_by_clock()

    def _synchronize(self) -> None:
        """Wait for pending GPU work, so that its time does not count as that of what comes next."""
        if self.machine.device.type == "cuda":
            torch.cuda.synchronize(self.machine.device)
            self.clock.tick(self.progress.update)

    def _record(self, validation: Validation) -> None:
        """Save the model if it is the best so far, and count towards early stopping if nothing got better."""
        progress, plan = self.progress, self.progress.planned
        loss = math.inf if validation.loss is None else validation.loss
        best_loss, lowest = (math.inf if each is None else each for each in (progress.best_loss, progress.lowest_loss))
        better = not progress.best_update or (validation.score, -loss) > (progress.best, -best_loss)
        if better:
            self.save_model()
            progress.best, progress.best_update, progress.waited = validation.score, progress.update, 0
            progress.best_loss, progress.constant = validation.loss, validation.constant
        elif loss >= lowest and (plan is None or progress.update > plan.updates / 2):
            progress.waited += 1
        progress.lowest_loss = validation.loss if loss < lowest else progress.lowest_loss
        progress.validated, progress.seconds = progress.update, self.seconds
        progress.validations += 1
        self.reporter.validation(progress, validation, better)
        if validation.constant and not progress.warned and plan is not None and progress.update < plan.updates:
            progress.warned = True
            self.reporter.say(f"nothing is learned yet: {validation.constant}; if that stays so, {ADVICE}")

    def _validate_average(self, max_sources: int) -> tuple[Validation, float | None]:
        """Validate the averaged model on at most so many sources of dev; by the clock, also measure the final scoring.

        Return the validation, and the seconds that the final scoring will take, if known.
        """
        machine = self.machine
        self.reporter.status("validating")
        with self._averaged():
            with autocast(machine.precision, machine.device):
                validation = self.task.validate(self.progress.validations, machine.device, max_sources)
            plan = self.progress.planned
            final = None if plan is None or plan.settled else self._rehearse()
        return validation, final

    def _rehearse(self) -> float | None:
        """Return the seconds that the final scoring will take. From half of the run on, outputs are about as long as
        they will be."""
        progress, plan = self.progress, self.progress.planned
        trained = plan is not None and progress.update > plan.updates / 2
        final = self.task.rehearse(self.machine.device, self.machine.precision, trained)
        if final is not None and self._pacing.doubtful(plan, final):
            again = self.task.rehearse(self.machine.device, self.machine.precision, trained)
            final = final if again is None else min(final, again)
        return final

    def _end(self, why: str) -> None:
        progress = self.progress
        progress.ended, progress.seconds = why, self.seconds
        if progress.constant:
            self.reporter.say(f"nothing is learned: {progress.constant}; {ADVICE}")
        self.reporter.ended(progress)
        self.save()

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Give the model the averaged weights for as long as the context lasts."""
        with torch.no_grad():
            weights = {name: parameter.clone() for name, parameter in self.model.named_parameters()}
            for name, parameter in self.model.named_parameters():
                parameter.copy_(self.average[name])
            try:
                yield
            finally:
                for name, parameter in self.model.named_parameters():
                    parameter.copy_(weights[name])
