"""The training loop: updates, the moving average of the weights, and validations and checkpoints by plan."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.config import folder as folders
from regard.runtime.distributed import ALONE, World
from regard.runtime.heap import HeapTrimmer
from regard.runtime.precision import Precision, autocast, tf32_products
from regard.training import checkpoint, open_ended
from regard.training.accumulation import GroupShare, GroupUpdater, shared_out
from regard.training.average import averaged, initial_average, update_average_
from regard.training.checkpoint import Progress
from regard.training.clock import Clock
from regard.training.open_ended import DevScore
from regard.training.pacing import Pacing
from regard.training.plan import EpochForm, PlanStep, Schedule, by_epochs
from regard.training.prefetch import Epochs, prefetching
from regard.training.progress import ADVICE, LOG_INTERVAL, Reporter
from regard.training.recorded_plan import RecordedPacing, RecordedPlan
from regard.training.task import MakeBatch, Task, Validation
from regard.training.updating import CapturedUpdater, DivergedError, Updater

CHECK_INTERVAL = 10  # updates on a GPU between two checks for a NaN loss, each of which synchronizes with the GPU
CHECKPOINT_SECONDS = 110.0  # seconds between two checkpoints, besides those of validations
EXTENSION = 1.2  # by the clock: a run goes on after its last update if so many times as many updates fit by now


@dataclass(frozen=True)
class Machine:
    device: torch.device
    precision: Precision
    world: World = ALONE


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
        recorded: RecordedPlan | None = None,
    ) -> None:
        """`seconds` may pass since the run `began`, by `time.monotonic`; None: now. With a `recorded` plan, the run is
        that of a clock that it does not ask."""
        self.task, self.folder, self.machine, self.reporter = task, folder, machine, reporter
        self.recipe, self.model = task.recipe.training, task.place_on(machine.device).train()
        self.world = machine.world
        self._group = self.world.size * self.recipe.accumulate  # batches of an update
        self.average, self.progress = initial_average(self.model), Progress(batches_per_update=self._group)
        self._updater = Updater(task, machine.device, machine.precision)
        self._update_model = self._model_updater()
        self._clock = Clock(seconds, began)
        pacing = Pacing(task, self.average, self._clock, machine.device, machine.precision, self.world)
        self.recorded, self._pacing = recorded, pacing if recorded is None else RecordedPacing(recorded)
        self._epochs = Epochs(task, machine.device)
        self._preparation = 0.0  # seconds per update that the preparation of the epoch took
        self._written = time.monotonic()  # when the last checkpoint was written
        self._heap = HeapTrimmer()
        self._consistent = True  # False in the middle of an update, when model and progress do not fit together
        if not self.world.is_first:  # all have the same weights; dropout must differ
            torch.manual_seed(hash((torch.initial_seed(), self.world.rank)) % 2**63)

    def _model_updater(self) -> Callable[[GroupShare, Progress], Tensor]:
        """Return the function that updates the model by this process's share of a group of batches."""
        update, captured = self._updater, self.task.can_capture(self.machine.device)
        if self._group == 1 and not self.world.connected and self.machine.device.type != "cpu":
            single = CapturedUpdater(update) if captured else update
            return lambda share, progress: single(share.batches[0], progress)
        if captured:
            self.reporter.say("updates are not captured as CUDA graphs: that is for one process and one batch each")
        return GroupUpdater(update, self.task, self.world)

    @property
    def seconds_left(self) -> float | None:
        """the seconds that are left of the time limit; None: the run asks no clock"""
        return None if self._clock.limit is None else self._clock.left

    # Checkpoints

    def resume(self) -> None:
        """Go on from the checkpoint in the folder."""
        path = self.folder / folders.TRAINING
        self.progress = checkpoint.read(path, self.model, self.average, self._updater.optimizer, self.world.rank)
        if self.progress.batches_per_update != self._group:
            raise ValueError(
                f"{self.folder}: begun with {self.progress.batches_per_update} batches per update; expected as many "
                f"processes × training.accumulate, got {self.world.size} × {self.recipe.accumulate}"
            )
        self.reporter.rewind(self.progress.log_bytes)
        self._clock.began = time.monotonic() - self.progress.seconds

    def save(self) -> None:
        """Write a checkpoint, with the random states of all processes."""
        self.progress.seconds, self.progress.log_bytes = self._clock.seconds, self.reporter.position
        states = self.world.gather(checkpoint.random_state())
        if self.world.is_first:
            path = self.folder / folders.TRAINING
            checkpoint.write(path, self.model, self.average, self._updater.optimizer, self.progress, states)
        self._written = time.monotonic()

    # The run

    def run(self) -> None:
        """Train to the end of the plan, of the time or of patience; save a checkpoint if interrupted."""
        progress, device = self.progress, self.machine.device
        if progress.plan is None:
            self._begin_plan()
        try:
            products = tf32_products(self.machine.precision, device)
            with deferred_interrupt(self.world) as interrupted, products, prefetching(device):
                if progress.update and not progress.ended:
                    self._between_updates()  # what was due when the run was interrupted
                while not (progress.ended or self._agreed(interrupted)):
                    self._epoch(interrupted)
            if self._agreed(interrupted):
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.reporter.say("interrupted: what was learned so far is kept; go on with --resume")
            if self._consistent:  # otherwise the last checkpoint counts
                self.save()
            raise
        except DivergedError:
            self._end("diverged: the loss became NaN; try a lower training.learning_rate")
        finally:
            self._epochs.close()

    def _begin_plan(self) -> None:
        """Make the first plan; by the clock there is none yet, and what holds until then is recorded."""
        if self.recorded is not None:
            self.progress.plan = self.recorded.first
        elif self._clock.limit is None:
            self._set_plan(self._first_plan())
        elif not self.progress.plan_steps:
            size, sources = self._pacing.batch_fraction(self.progress), self._pacing.validation_sources(None)
            self._record(Schedule(10**9, (), self.recipe.warmup, batch_fraction=size, validation_sources=sources))

    def _agreed(self, interrupted: threading.Event) -> bool:
        """Return whether any process was interrupted."""
        return self.world.any(interrupted.is_set())[0]

    def _first_plan(self) -> Schedule:
        """Return the plan for the recipe's epochs, or one that goes on while dev improves."""
        updates = self._updates(self.task.batches_per_epoch())
        if self.recipe.epochs is not None:
            return by_epochs(self.recipe, updates)
        return open_ended.first_plan(self.recipe, updates * self.task.expected_epochs)

    def _updates(self, batches: int) -> int:
        """Return the number of updates that so many batches of an epoch make."""
        return -(-batches // self._group)

    def _epoch(self, interrupted: threading.Event) -> None:
        """Run the rest of an epoch, up to an interrupt or to another form of epochs."""
        progress, form = self.progress, self._epoch_form(self.progress.update)
        began = time.monotonic()
        with self._clock.paused():
            batches = self._epochs.batches(progress.epoch, form)
        plan, last = progress.plan, progress.update + self._updates(len(batches) - progress.place)
        if plan is None or last < plan.updates:
            self._epochs.prepare(progress.epoch + 1, self._epoch_form(last))
        self._preparation = (time.monotonic() - began) / self._updates(len(batches))
        for first in range(progress.place, len(batches), self._group):
            began = time.monotonic()
            share = self._share(batches[first : first + self._group])
            self.update(share, began, last=first + self._group >= len(batches))
            self._between_updates()
            if progress.ended or self._agreed(interrupted) or self._epoch_form(progress.update) != form:
                return

    def _epoch_form(self, update: int) -> EpochForm:
        """Return how batches are made in an update, as far as it is known by now."""
        plan = self.progress.plan
        return EpochForm(self._pacing.batch_fraction(self.progress), plan is not None and plan.is_canonical(update))

    def _share(self, group: Sequence[MakeBatch]) -> GroupShare:
        """Make the batches of a group that this process computes."""
        makes, has_filler = shared_out(group, self.world)
        return GroupShare([make(self.machine.device) for make in makes], has_filler)

    def update(self, share: GroupShare, began: float, last: bool = False) -> None:
        """Run one update. `began`: when the making of the batches began; `last`: whether they end the epoch."""
        progress, recipe = self.progress, self.recipe
        plan = progress.plan or Schedule(10**9, (), recipe.warmup)
        self._consistent = False
        self._updater.set_learning_rate(plan.learning_rate(progress.update, recipe))
        loss = self._update_model(share, progress)
        if loss.is_cuda and progress.update % CHECK_INTERVAL == 0 and not bool(loss.isfinite()):
            raise DivergedError
        progress.update += 1
        place = progress.place + self._group
        resegmented = plan.is_canonical(progress.update) != plan.is_canonical(progress.update - 1)
        progress.epoch, progress.place = (progress.epoch + 1, 0) if last or resegmented else (progress.epoch, place)
        update_average_(self.average, self.model, progress.update, recipe.average)
        self._consistent = True
        tokens = round(self.world.total(share.tokens))
        self.reporter.update(progress, plan, loss, tokens, time.monotonic() - began, self._clock.seconds)
        if not loss.is_cuda or progress.update % LOG_INTERVAL == 0:  # the log has just synchronized with the GPU
            self._clock.tick(progress.update)

    # Between updates

    def _between_updates(self) -> None:
        """Do what is due: plan, validate, end the run, or save a checkpoint."""
        progress = self.progress
        self._heap.trim_if_due()
        if self._pacing.due(progress):
            self._set_plan(self._pacing.plan(progress, self._preparation))
        plan = progress.plan
        time_is_up = self._pacing.time_is_up(progress)
        due = time_is_up or (plan is not None and progress.update in plan.validations)
        if due and progress.last_validation < progress.update:
            self._validate()
            plan = progress.plan
        if self.recipe.patience and progress.waited >= self.recipe.patience:
            self._end(f"no better for {progress.waited} validations")
        elif plan is not None and progress.update >= plan.updates:
            self._end("done")
        elif time_is_up:
            self._end("the time is up")
        elif self._checkpoint_due():
            with self._clock.paused_after(progress.update, self.machine.device):
                self.save()

    def _checkpoint_due(self) -> bool:
        """Return whether it is time for a checkpoint, by the clock of the first process."""
        return self.world.any(self.world.is_first and time.monotonic() - self._written > CHECKPOINT_SECONDS)[0]

    def _follow(self, plan: Schedule) -> None:
        """Let a plan hold from now on. If it changes the segmentation of text, a new epoch begins."""
        progress, update = self.progress, self.progress.update
        before = progress.plan is not None and progress.plan.is_canonical(update)
        if progress.place and plan.is_canonical(update) != before:
            progress.epoch, progress.place = progress.epoch + 1, 0
        progress.plan = plan

    def _set_plan(self, plan: Schedule) -> None:
        self._follow(plan)
        self._record(plan)
        self.reporter.planned(plan)
        if plan.settled:  # a resumed run can make any other plan again
            with self._clock.paused():
                self.save()

    def _record(self, plan: Schedule) -> None:
        """Note a plan of the clock, so that the run can be repeated."""
        if self._clock.limit is not None:
            progress = self.progress
            progress.plan_steps.append(PlanStep.of(plan, progress.update, progress.validations))

    def _validate(self) -> None:
        """Validate the averaged model, save it if it is the best so far, and plan again by the time that took."""
        progress, plan, machine = self.progress, self.progress.plan, self.machine
        follows_clock = plan is not None and not plan.settled
        with self._clock.paused_after(progress.update, machine.device):
            began = time.monotonic()
            self.reporter.status("validating")
            with averaged(self.model, self.average), autocast(machine.precision, machine.device):
                max_sources = self._pacing.validation_sources(plan)
                validation = self.task.validate(progress.validations, machine.device, max_sources, self.world)
            validation = self.world.broadcast(validation)
            final = self._pacing.rehearse(progress) if follows_clock else None
            best = is_best(progress, validation)
            if best and self.world.is_first:
                folders.write_tensors(self.folder / folders.WEIGHTS, self.average)
            record_validation(progress, validation, best)
            progress.seconds = self._clock.seconds
            self.reporter.validation(progress, validation, best)
            if plan is not None and plan.expected:
                self._follow(plan := open_ended.next_plan(plan, progress.scores, self.recipe))
                self.reporter.planned(plan)
            if validation.constant and not progress.warned and plan is not None and progress.update < plan.updates:
                progress.warned = True
                self.reporter.say(f"nothing is learned yet: {validation.constant}; if that stays so, {ADVICE}")
            self.save()
        if plan is not None and follows_clock:
            progress.plan = self._pacing.timed(plan, time.monotonic() - began, final)
            if self.world.broadcast(self._clock.measured > 0):
                new = self._pacing.plan(progress, self._preparation)
                if progress.update < plan.updates or new.updates >= EXTENSION * progress.update:
                    self._set_plan(new)

    def _end(self, why: str) -> None:
        progress = self.progress
        progress.ended, progress.seconds = why, self._clock.seconds
        self.reporter.ended(progress)
        self.save()


def is_best(progress: Progress, validation: Validation) -> bool:
    """Return whether this model is the best so far; of equal scores, the lower loss is better."""
    loss, best_loss = _or_inf(validation.loss), _or_inf(progress.best_loss)
    return not progress.best_update or (validation.score, -loss) > (progress.best, -best_loss)


def record_validation(progress: Progress, validation: Validation, best: bool) -> None:
    """Note a validation in the progress; `best`: its model is the best so far.

    It counts towards early stopping if neither the score nor the loss on dev got better, in the second half of the run,
    and not before text has its canonical segmentation, which improves the score; not in an open-ended run, which ends
    by itself.
    """
    plan, lower = progress.plan, _or_inf(validation.loss) < _or_inf(progress.lowest_loss)
    progress.scores.append(DevScore(progress.update, validation.score, validation.loss))
    if best:
        progress.best, progress.best_update, progress.waited = validation.score, progress.update, 0
        progress.best_loss, progress.constant = validation.loss, validation.constant
    elif not lower and (plan is None or _counts_for_stopping(plan, progress.update)):
        progress.waited += 1
    if lower:
        progress.lowest_loss = validation.loss
    progress.last_validation = progress.update
    progress.validations += 1


def _counts_for_stopping(plan: Schedule, update: int) -> bool:
    return not plan.expected and update > max(plan.updates / 2, plan.canonical_from)


def _or_inf(loss: float | None) -> float:
    return math.inf if loss is None else loss


@contextmanager
def deferred_interrupt(world: World = ALONE) -> Iterator[threading.Event]:
    """Set the event at the first Ctrl-C, so that the current update can end; a second one raises KeyboardInterrupt.

    `torchrun` forwards SIGINT and SIGTERM to all processes, and kills them 30 seconds later: there both set the event,
    and a second one changes nothing.
    """
    received = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def handle(*_: object) -> None:
        received.set()
        if not world.connected:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    signals = (signal.SIGINT, signal.SIGTERM) if world.connected else (signal.SIGINT,)
    before = [(each, signal.signal(each, handle)) for each in signals]
    try:
        yield received
    except RuntimeError:
        if world.connected:  # another process has ended: torchrun sends SIGTERM, which must not precede the message
            before = [(each, signal.SIG_IGN) for each, _ in before]
        raise
    finally:
        for each, handler in before:
            signal.signal(each, handler)
