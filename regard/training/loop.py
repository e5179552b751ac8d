"""The loop: batch after batch, with the running average of the weights, validations and checkpoints by plan."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard import folder as folders
from regard.text.batches import Batch, arrange
from regard.text.vocabulary import PAD
from regard.training import checkpoint
from regard.training.checkpoint import Progress
from regard.training.guide import guided_loss
from regard.training.loss import smoothed_loss
from regard.training.plan import TRIAL, Plan, by_clock, by_epochs
from regard.training.precision import Precision, autocast
from regard.training.progress import Reporter
from regard.training.setup import Setup
from regard.training.validation import Validation, validate

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


class DivergedError(Exception):
    """The loss is no number any more."""


class Loop:
    """One run, from where `progress` stands to its end."""

    def __init__(
        self,
        setup: Setup,
        folder: Path,
        machine: Machine,
        reporter: Reporter,
        seconds: float | None,
        seed: int,
        began: float | None = None,
    ) -> None:
        """`seconds` may pass since it `began`, by `time.monotonic`; None: now."""
        self.setup, self.folder, self.machine, self.reporter = setup, folder, machine, reporter
        self._limit, self._seed = seconds, seed
        self.recipe = setup.recipe.training
        self.model = setup.model.to(machine.device).train()
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), self.recipe.learning_rate, betas=(0.9, 0.98), fused=True
        )
        self.average = {name: tensor.detach().clone() for name, tensor in self.model.named_parameters()}
        self.progress = Progress()
        self._written = time.monotonic()
        self._started = self._written if began is None else began
        self._whole = True
        """not in the middle of an update"""
        self._stop = False
        """asked to stop after this update"""
        self._preparing = 0.0
        """an update's share of making the epoch's examples"""

    # What is kept

    @property
    def training_folder(self) -> Path:
        return self.folder / folders.TRAINING

    def resume(self) -> None:
        self.progress = checkpoint.read(self.training_folder, self.model, self.average, self.optimizer)
        self.reporter.rewind(self.progress.log_bytes)
        self._started = time.monotonic() - self.progress.seconds

    def save(self) -> None:
        self.progress.seconds = self.seconds
        self.progress.log_bytes = self.reporter.position
        checkpoint.write(self.training_folder, self.model, self.average, self.optimizer, self.progress)
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
            batches = len(arrange(self.setup.examples.plain, *self._batch_size, self._seed, 0))
            self._keep_to(by_epochs(self.recipe, batches))
        try:
            with self._interrupts_wait():
                if progress.update and not progress.ended:
                    self._between_updates()  # what was due when the run was interrupted
                while not progress.ended:
                    self._epoch()
        except KeyboardInterrupt:
            self._interrupted()
            raise
        except DivergedError:
            self._end("diverged: the loss is no number any more; try a lower training.learning_rate")

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
        if not self.progress.best_update:
            self.save_model()
        self.save()

    @property
    def _batch_size(self) -> tuple[int, int]:
        assert self.recipe.batch_tokens is not None
        return self.recipe.batch_sentences or 10**9, self.recipe.batch_tokens

    def _epoch(self) -> None:
        progress = self.progress
        began = time.monotonic()
        examples = self.setup.examples.epoch(progress.epoch)
        order = arrange(examples, *self._batch_size, self._seed, progress.epoch)
        self._preparing = (time.monotonic() - began) / len(order)
        for rows in order[progress.place :]:
            began = time.monotonic()
            batch = Batch.of([examples[row] for row in rows], self.machine.device)
            linked = (
                None if self.setup.guide is None else self.setup.guide.linked(rows, batch, self.recipe.guided_later)
            )
            self.update(batch, began, linked, last=progress.place + 1 == len(order))
            self._between_updates()
            if self._stop:
                raise KeyboardInterrupt
            if progress.ended:
                return

    def update(self, batch: Batch, began: float, linked: Tensor | None = None, last: bool = False) -> None:
        """One step of the optimizer, `began` with the making of the batch; `last` of the epoch.

        `linked` bool [B, T, S]: where attention should look.
        """
        progress, recipe = self.progress, self.recipe
        plan = progress.planned or Plan(10**9, (), recipe.warmup)
        self._whole = False
        for group in self.optimizer.param_groups:
            group["lr"] = plan.learning_rate(progress.update, recipe)
        with autocast(self.machine.precision, self.machine.device):
            loss, told = self._loss(batch, linked, plan.sampling(progress.update, recipe))
        if (not told.is_cuda or progress.update % CHECKED == 0) and not bool(told.isfinite()):
            raise DivergedError
        if progress.first_loss is None:
            progress.first_loss = float(told)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._clip()
        self.optimizer.step()
        progress.update += 1
        progress.epoch, progress.place = (progress.epoch + 1, 0) if last else (progress.epoch, progress.place + 1)
        self._take_average()
        self._whole = True
        self.reporter.update(progress, plan, told, batch.tokens, time.monotonic() - began, self.seconds)

    def _loss(self, batch: Batch, linked: Tensor | None, sampling: float) -> tuple[Tensor, Tensor]:
        """(what is minimized, the mean loss of a token that is told)"""
        decoded = self.model(batch.source, batch.lengths, batch.target, sampling=sampling, weights=linked is not None)
        output, expected = batch.without_padding(decoded.output), batch.without_padding(batch.expected)
        layer = self.model.output
        loss, each = smoothed_loss(output, layer.weight, layer.bias, expected, self.recipe.label_smoothing)
        if linked is not None:
            loss = loss + self.recipe.guided_attention * guided_loss(decoded.weights, linked)
        if decoded.log_probability is None or self.setup.recipe.model.estimator != "reinforce":
            return loss, each.mean()
        return loss + self._by_reward(decoded.log_probability, batch.expected != PAD, each), each.mean()

    def _by_reward(self, log_probability: Tensor, real: Tensor, losses: Tensor) -> Tensor:
        """REINFORCE (Williams 1992): choices are made likelier by how much better than usual it went after them.

        − Σ_t (R_t − b) log π(chosen_t) / N,      R_t = mean over u ≥ t of log p(y_u)
        """
        rewards = torch.zeros_like(log_probability).masked_scatter(real, -losses.to(log_probability.dtype))
        ahead = rewards.flip(1).cumsum(1).flip(1) / real.flip(1).cumsum(1).flip(1).clamp(min=1)
        mean = float(ahead[real].mean())
        baseline = self.progress.baseline
        self.progress.baseline = mean if baseline is None else 0.95 * baseline + 0.05 * mean
        advantage = (ahead - (mean if baseline is None else baseline)) * real
        return -(advantage * log_probability).sum() / real.sum()

    def _clip(self) -> None:
        if not self.recipe.clip:
            return
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        # The fused optimizer divides by this as it goes: no pass of its own over all gradients.
        self.optimizer.grad_scale = (norm / self.recipe.clip).clamp(min=1)  # type: ignore[attr-defined]

    def _take_average(self) -> None:
        if self.progress.update % AVERAGED and self.recipe.average:
            return
        taken = self.progress.update / AVERAGED
        keep = min(self.recipe.average**AVERAGED, (1 + taken) / (10 + taken)) if self.recipe.average else 0.0
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                self.average[name].lerp_(parameter, 1 - keep)

    # Between updates

    def _between_updates(self) -> None:
        """What is due: the plan, a validation, the end, a checkpoint."""
        progress = self.progress
        if progress.plan is None and progress.update >= TRIAL:
            self._plan_by_clock()
        plan = progress.planned
        over = self._limit is not None and self.seconds > self._limit
        if progress.validated < progress.update and ((plan and progress.update in plan.validations) or over):
            self._validate()
        if self.recipe.patience and progress.waited >= self.recipe.patience:
            self._end(f"no better for {progress.waited} validations")
        elif plan is not None and progress.update >= plan.updates:
            self._end("done")
        elif over:
            self._end("the time is up")
        elif time.monotonic() - self._written > CHECKPOINT_SECONDS:
            self.save()

    def _plan_by_clock(self) -> None:
        assert self._limit is not None
        began = time.monotonic()
        self._look(0)
        a_validation = time.monotonic() - began
        left = self._limit - self.seconds - FINAL_SEARCH * a_validation
        an_update = self.reporter.seconds_an_update + self._preparing
        self._keep_to(by_clock(self.recipe, left, an_update, a_validation))

    def _keep_to(self, plan: Plan) -> None:
        self.progress.plan = plan.as_dict()
        self.reporter.planned(plan)
        self.save()

    def _validate(self) -> None:
        progress, plan = self.progress, self.progress.planned
        number = plan.validations.index(progress.update) if plan and progress.update in plan.validations else 0
        found = self._look(number)
        better = found.chrf > progress.best
        if better:
            self.save_model()
            progress.best, progress.best_update, progress.waited = found.chrf, progress.update, 0
        elif plan is None or progress.update > plan.updates / 2:
            progress.waited += 1
        progress.validated, progress.seconds = progress.update, self.seconds
        self.reporter.validation(progress, found, better)
        self.save()

    def _look(self, number: int) -> Validation:
        with self._averaged(), autocast(self.machine.precision, self.machine.device):
            return validate(self.setup, number, self.machine.device)

    def _end(self, why: str) -> None:
        progress = self.progress
        if not progress.best_update and all(bool(tensor.isfinite().all()) for tensor in self.average.values()):
            self.save_model()
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
