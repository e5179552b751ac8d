"""The loop: batch after batch, with the running average of the weights, validations and checkpoints by plan."""

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
from regard.runtime.precision import Precision, autocast, fast_products
from regard.training import checkpoint
from regard.training.checkpoint import Progress
from regard.training.clock import Clock
from regard.training.graph_capture import RecordedUpdate
from regard.training.interrupts import deferred_interrupt
from regard.training.pacing import Pacing
from regard.training.plan import Plan, by_epochs
from regard.training.prefetch import side_by_side
from regard.training.progress import LOGGED, Reporter
from regard.training.task import MakeBatch, Task, Validation
from regard.training.updating import DivergedError, Update

AVERAGED = 8
"""the average is taken every so many updates"""
CHECKED = 10
"""the loss is looked at every so many updates: on a GPU looking means waiting"""
CHECKPOINT_SECONDS = 110.0
ADVICE = "try more data, more epochs or a higher training.learning_rate"


@dataclass(frozen=True)
class Machine:
    device: torch.device
    precision: Precision


class Loop:
    """One run, from where `progress` stands to its end."""

    def __init__(
        self,
        task: Task,
        folder: Path,
        machine: Machine,
        reporter: Reporter,
        seconds: float | None,
        began: float | None = None,
    ) -> None:
        """`seconds` may pass since it `began`, by `time.monotonic`; None: now."""
        self.task, self.folder, self.machine, self.reporter = task, folder, machine, reporter
        self.clock = Clock(seconds, began)
        self._pacing = Pacing(task, self.clock, machine.device)
        self.recipe = task.recipe.training
        self.model = task.model.to(machine.device).train()
        self._update = self._updating()
        self.average = {name: tensor.detach().clone() for name, tensor in self.model.named_parameters()}
        self.progress = Progress()
        self._written = time.monotonic()
        self._whole = True
        """not in the middle of an update"""
        self._stop = False
        """asked to stop after this update"""
        self._beside = ThreadPoolExecutor(1)
        self._ahead: tuple[int, Future[Sequence[MakeBatch]]] | None = None
        """the next epoch, being made"""
        self._preparing = 0.0
        """an update's share of making the epoch's examples"""

    def _updating(self) -> Update | RecordedUpdate:
        device = self.machine.device
        update = Update(self.task, device, self.machine.precision)
        return RecordedUpdate(update) if self.task.recorded(device) else update

    # What is kept

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
        """The average as the model that is used."""
        folders.write_weights(self.folder, self.average)

    @property
    def seconds(self) -> float:
        return self.clock.seconds

    @property
    def _batch_size(self) -> float:
        """The size of batches as a fraction of the recipe's. A run by the clock begins with the smallest."""
        plan = self.progress.planned
        return self._pacing.smallest if plan is None else plan.batch

    # The run

    def run(self) -> None:
        """To the end of the plan, of the clock or of patience; an interrupted run keeps what it has."""
        progress = self.progress
        if progress.plan is None and self.clock.limit is None:
            self._keep_to(by_epochs(self.recipe, self.task.updates()))
        try:
            device = self.machine.device
            with (
                deferred_interrupt(self._stop_soon),
                fast_products(self.machine.precision, device),
                side_by_side(device),
            ):
                if progress.update and not progress.ended:
                    self._between_updates()  # what was due when the run was interrupted
                while not progress.ended:
                    self._epoch()
            if self._stop:  # it came when the last update was over
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            self._interrupted()
            raise
        except DivergedError:
            self._end("diverged: the loss is no number any more; try a lower training.learning_rate")
        finally:
            self._beside.shutdown(wait=False, cancel_futures=True)

    def _stop_soon(self) -> None:
        self._stop = True

    def _interrupted(self) -> None:
        self.reporter.say("interrupted: what was learned so far is kept; go on with --resume")
        if not self._whole:  # in the middle of an update: the last checkpoint counts
            return
        self.save()

    def _epoch(self) -> None:
        progress, size = self.progress, self._batch_size
        began = time.monotonic()
        with self.clock.beside():
            batches = self._batches(progress.epoch, size)
        self._preparing = (time.monotonic() - began) / len(batches)
        for make in batches[progress.place :]:
            began = time.monotonic()
            self.update(make(self.machine.device), began, last=progress.place + 1 == len(batches))
            self._between_updates()
            if self._stop:
                raise KeyboardInterrupt
            if progress.ended or self._batch_size != size:
                return

    def _batches(self, epoch: int, size: float) -> Sequence[MakeBatch]:
        """Those of the epoch. On a GPU, which leaves the CPU free, those of the next one are made meanwhile."""
        ahead, self._ahead = self._ahead, None
        batches = self.task.epoch(epoch, size) if ahead is None or ahead[0] != epoch else ahead[1].result()
        plan, last = self.progress.planned, self.progress.update + len(batches) - self.progress.place
        if self.machine.device.type == "cuda" and (plan is None or last < plan.updates):
            self._ahead = epoch + 1, self._beside.submit(self.task.epoch, epoch + 1, size)
        return batches

    def update(self, batch: Any, began: float, last: bool = False) -> None:
        """One step of the optimizer, `began` with the making of the batch; `last` of the epoch."""
        progress, recipe = self.progress, self.recipe
        plan = progress.planned or Plan(10**9, (), recipe.warmup)
        self._whole = False
        self._update.rate(plan.learning_rate(progress.update, recipe))
        told = self._update(batch, progress)
        if told.is_cuda and progress.update % CHECKED == 0 and not bool(told.isfinite()):
            raise DivergedError
        progress.update += 1
        progress.epoch, progress.place = (progress.epoch + 1, 0) if last else (progress.epoch, progress.place + 1)
        self._take_average()
        self._whole = True
        self.reporter.update(progress, plan, told, batch.tokens, time.monotonic() - began, self.seconds)
        if not told.is_cuda or progress.update % LOGGED == 0:  # when a GPU has been waited for
            self.clock.tick(progress.update)

    def _take_average(self) -> None:
        if self.progress.update % AVERAGED and self.recipe.average:
            return
        taken = self.progress.update / AVERAGED
        keep = min(self.recipe.average**AVERAGED, (1 + taken) / (10 + taken)) if self.recipe.average else 0.0
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.values()), list(self.model.parameters()), 1 - keep)

    # Between updates

    def _between_updates(self) -> None:
        """What is due: the plan, a validation, the end, a checkpoint."""
        progress = self.progress
        if self._pacing.due(progress):
            self._plan_by_clock()
        plan = progress.planned
        over = self._pacing.time_is_up(progress)
        if progress.validated < progress.update and ((plan and progress.update in plan.validations) or over):
            self._validate()
            plan = progress.planned
        if self.recipe.patience and progress.waited >= self.recipe.patience:
            self._end(f"no better for {progress.waited} validations")
        elif plan is not None and progress.update >= plan.updates:
            self._end("done")
        elif over:
            self._end("the time is up")
        elif time.monotonic() - self._written > CHECKPOINT_SECONDS:
            self._wait()
            with self.clock.beside():
                self.save()

    def _plan_by_clock(self) -> None:
        progress, before, final = self.progress, self._batch_size, None
        if self._pacing.outdated(progress.planned):
            self._wait()
            with self.clock.beside(), self._averaged():
                final = self._rehearse()
        plan = self._pacing.plan(progress, self._preparing, final)
        if plan.batch != before:
            progress.epoch, progress.place = progress.epoch + 1, 0
            self.clock.forget()
        self._keep_to(plan)
        self.clock.was_read()

    def _keep_to(self, plan: Plan) -> None:
        self.progress.plan = plan.as_dict()
        self.reporter.planned(plan)
        if plan.settled:  # one that follows the clock may as well be made again
            with self.clock.beside():
                self.save()

    def _validate(self) -> None:
        progress, plan = self.progress, self.progress.planned
        self._wait()
        began = time.monotonic()
        with self.clock.beside():
            found, final = self._look(self._pacing.validated(plan))
            self._note(found)
            self.save()
        if plan is not None and not plan.settled:
            progress.plan = self._pacing.timed(plan, time.monotonic() - began, final).as_dict()
            if self.clock.measured and progress.update < plan.updates:
                self._plan_by_clock()

    def _wait(self) -> None:
        """For what a GPU still has to do, so that its time is not taken for that of what comes next."""
        if self.machine.device.type == "cuda":
            torch.cuda.synchronize(self.machine.device)
            self.clock.tick(self.progress.update)

    def _note(self, found: Validation) -> None:
        """Keep the model if it is the best so far, and count towards early stopping if nothing got better."""
        progress, plan = self.progress, self.progress.planned
        loss = math.inf if found.loss is None else found.loss
        known, lowest = (math.inf if each is None else each for each in (progress.best_loss, progress.lowest_loss))
        better = not progress.best_update or (found.score, -loss) > (progress.best, -known)
        if better:
            self.save_model()
            progress.best, progress.best_update, progress.waited = found.score, progress.update, 0
            progress.best_loss, progress.constant = found.loss, found.constant
        elif loss >= lowest and (plan is None or progress.update > plan.updates / 2):
            progress.waited += 1
        progress.lowest_loss = found.loss if loss < lowest else progress.lowest_loss
        progress.validated, progress.seconds = progress.update, self.seconds
        progress.validations += 1
        self.reporter.validation(progress, found, better)
        if found.constant and not progress.warned and plan is not None and progress.update < plan.updates:
            progress.warned = True
            self.reporter.say(f"nothing is learned yet: {found.constant}; if that stays so, {ADVICE}")

    def _look(self, most: int) -> tuple[Validation, float | None]:
        """Try the averaged model on `most` sources of dev; by the clock, also measure what the final scoring takes."""
        machine = self.machine
        self.reporter.status("validating")
        with self._averaged():
            with autocast(machine.precision, machine.device):
                found = self.task.validate(self.progress.validations, machine.device, most)
            plan = self.progress.planned
            final = None if plan is None or plan.settled else self._rehearse()
        return found, final

    def _rehearse(self) -> float | None:
        """How long the final scoring takes. Half-way, what a model says is about as long as it will be."""
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
        """The model with the averaged weights, for a while."""
        with torch.no_grad():
            kept = {name: parameter.clone() for name, parameter in self.model.named_parameters()}
            for name, parameter in self.model.named_parameters():
                parameter.copy_(self.average[name])
            try:
                yield
            finally:
                for name, parameter in self.model.named_parameters():
                    parameter.copy_(kept[name])
