"""The loop: batch after batch, with the running average of the weights, validations and checkpoints by plan."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard import folder as folders
from regard.training import checkpoint
from regard.training.beside import side_by_side
from regard.training.checkpoint import Progress
from regard.training.plan import TRIAL, TRIAL_SHARE, Plan, by_clock, by_epochs
from regard.training.precision import Precision, autocast, fast_products
from regard.training.progress import Reporter
from regard.training.recording import RecordedUpdate
from regard.training.task import MakeBatch, Task, Validation
from regard.training.updating import DivergedError, Update

AVERAGED = 8
"""the average is taken every so many updates"""
CHECKED = 10
"""the loss is looked at every so many updates: on a GPU looking means waiting"""
LEARNED = 0.97
"""a run that has learned anything has a loss below this share of the first"""
CHECKPOINT_SECONDS = 110.0
FINAL_SEARCH = 5
"""the final scoring by beam search takes about as long as so many validations"""


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
        self._limit = seconds
        self.recipe = task.recipe.training
        self.model = task.model.to(machine.device).train()
        self._update = self._updating()
        self.average = {name: tensor.detach().clone() for name, tensor in self.model.named_parameters()}
        self.progress = Progress()
        self._written = time.monotonic()
        self._started = self._written if began is None else began
        self._whole = True
        """not in the middle of an update"""
        self._stop = False
        """asked to stop after this update"""
        self._beside = ThreadPoolExecutor(1)
        self._ahead: tuple[int, Future[Sequence[MakeBatch]]] | None = None
        """the next epoch, being made"""
        self._preparing = 0.0
        """an update's share of making the epoch's examples"""
        self._read: tuple[int, float] | None = None
        """after which update, and when, the clock was read last; nothing but updates happened since"""

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
        self._started = time.monotonic() - self.progress.seconds

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
        return time.monotonic() - self._started

    # The run

    def run(self) -> None:
        """To the end of the plan, of the clock or of patience; an interrupted run keeps what it has."""
        progress = self.progress
        if progress.plan is None and self._limit is None:
            self._keep_to(by_epochs(self.recipe, self.task.updates()))
        try:
            device = self.machine.device
            with self._interrupts_wait(), fast_products(self.machine.precision, device), side_by_side(device):
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

    @contextmanager
    def _interrupts_wait(self) -> Iterator[None]:
        """The first Ctrl-C waits for the update to be over, so that nothing is lost; a second one does not."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(*_: object) -> None:
            self._stop = True
            signal.signal(signal.SIGINT, signal.default_int_handler)

        before = signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupted(self) -> None:
        self.reporter.say("interrupted: what was learned so far is kept; go on with --resume")
        if not self._whole:  # in the middle of an update: the last checkpoint counts
            return
        self.save()

    def _epoch(self) -> None:
        progress = self.progress
        began = time.monotonic()
        batches = self._batches(progress.epoch)
        self._preparing = (time.monotonic() - began) / len(batches)
        for make in batches[progress.place :]:
            began = time.monotonic()
            self.update(make(self.machine.device), began, last=progress.place + 1 == len(batches))
            self._between_updates()
            if self._stop:
                raise KeyboardInterrupt
            if progress.ended:
                return

    def _batches(self, epoch: int) -> Sequence[MakeBatch]:
        """Those of the epoch. On a GPU, which leaves the CPU free, those of the next one are made meanwhile."""
        ahead, self._ahead = self._ahead, None
        batches = self.task.epoch(epoch) if ahead is None or ahead[0] != epoch else ahead[1].result()
        plan, last = self.progress.planned, self.progress.update + len(batches) - self.progress.place
        if self.machine.device.type == "cuda" and (plan is None or last < plan.updates):
            self._ahead = epoch + 1, self._beside.submit(self.task.epoch, epoch + 1)
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
        if progress.first_loss is None:
            progress.first_loss = float(told)
        progress.update += 1
        progress.epoch, progress.place = (progress.epoch + 1, 0) if last else (progress.epoch, progress.place + 1)
        self._take_average()
        self._whole = True
        self.reporter.update(progress, plan, told, batch.tokens, time.monotonic() - began, self.seconds)

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
        if progress.plan is None and progress.update >= TRIAL and self._tried:
            self._plan_by_clock()
        plan = progress.planned
        over = self._limit is not None and self.seconds > self._limit
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
            self.save()

    @property
    def _tried(self) -> bool:
        """Have updates been made for long enough to tell how long one takes?"""
        assert self._limit is not None
        return self.reporter.seconds_of_updates >= TRIAL_SHARE * self._limit

    @property
    def _steady(self) -> bool:
        """Will updates go on as fast as they go now? Not while many of them are still being recorded; but half of the
        time that there is for updates is enough to find out."""
        assert self._limit is not None
        spent = self.reporter.seconds_of_updates
        late = spent > 0.5 * (self._limit - (self.seconds - spent))
        return late or not isinstance(self._update, RecordedUpdate) or self._update.steady

    def _plan_by_clock(self) -> None:
        assert self._limit is not None
        pace, began = self._pace, time.monotonic()
        self._look(0)
        self._read_clock(pace, time.monotonic() - began, settled=False)

    @property
    def _pace(self) -> float:
        """Seconds an update, with all that goes with it: since the clock was read last, if that was a while ago."""
        if self._read is not None and self.progress.update - self._read[0] >= TRIAL:
            return (self.seconds - self._read[1]) / (self.progress.update - self._read[0])
        return self.reporter.seconds_an_update + self._preparing

    def _read_clock(self, an_update: float, a_validation: float, settled: bool) -> None:
        """Plan what is left by how long an update and a validation take now."""
        assert self._limit is not None
        left = self._limit - self.seconds - FINAL_SEARCH * a_validation
        self._keep_to(by_clock(self.recipe, left, an_update, a_validation, self.progress.update, settled))
        self._read = self.progress.update, self.seconds

    def _keep_to(self, plan: Plan) -> None:
        self.progress.plan = plan.as_dict()
        self.reporter.planned(plan)
        self.save()

    def _validate(self) -> None:
        progress, plan = self.progress, self.progress.planned
        number = plan.validations.index(progress.update) if plan and progress.update in plan.validations else 0
        timed = self._limit is not None and self.reporter.seconds_of_updates > 0  # not if it was just resumed
        pace, began = self._pace if timed else 0.0, time.monotonic()
        found = self._look(number)
        took = time.monotonic() - began
        better = found.score > progress.best
        if better:
            self.save_model()
            progress.best, progress.best_update, progress.waited = found.score, progress.update, 0
        elif plan is None or progress.update > plan.updates / 2:
            progress.waited += 1
        progress.validated, progress.seconds = progress.update, self.seconds
        self.reporter.validation(progress, found, better)
        open_ = plan is not None and not plan.settled and progress.update < plan.updates
        if open_ and timed:
            self._read_clock(pace, took, settled=self._steady)  # which saves
        else:
            self.save()

    def _look(self, number: int) -> Validation:
        with self._averaged(), autocast(self.machine.precision, self.machine.device):
            return self.task.validate(number, self.machine.device)

    def _end(self, why: str) -> None:
        progress = self.progress
        progress.ended, progress.seconds = why, self.seconds
        if progress.first_loss and self.reporter.loss > LEARNED * progress.first_loss:
            self.reporter.say(
                f"nothing is learned: the loss was {progress.first_loss:.2f} at first and is {self.reporter.loss:.2f} "
                "now; try more epochs or a higher training.learning_rate"
            )
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
