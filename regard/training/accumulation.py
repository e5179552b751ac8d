"""One update from several batches: those of all processes, and those that each process accumulates.

An update consumes a group of W × A consecutive batches of the epoch, for W processes and `training.accumulate` = A.
Process r computes batches r, W + r, 2W + r, … of the group. The last group of an epoch may be smaller; then the last
batch of some processes is a filler, which counts nothing: they take part in the reductions with a zero gradient.

Each term k of a task's loss is a mean over some items of the batch, c_bk of them: target tokens, linked tokens, texts.
The update minimizes the means over all items of the group,

    loss = Σ_k Σ_b (c_bk / Σ_b' c_b'k) · loss_bk

so that it does not depend on how the batches are spread over processes, only on which batches they are. By the same
equation a large batch is computed as several micro-batches on a CPU (`Task.micro_batches`): the activations of one are
freed before the next, so that the memory of an update does not grow with the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard.runtime.distributed import World
from regard.runtime.precision import autocast
from regard.training.checkpoint import Progress
from regard.training.task import Task
from regard.training.updating import DivergedError, Updater

T = TypeVar("T")


@dataclass(frozen=True)
class GroupShare:
    """The batches of a group that one process computes; with `has_filler` the last one counts nothing."""

    batches: Sequence[Any]
    has_filler: bool = False

    @property
    def tokens(self) -> int:
        """the size in the log of the batches that count"""
        real = self.batches[:-1] if self.has_filler else self.batches
        return sum(batch.tokens for batch in real)


def shared_out(group: Sequence[T], world: World) -> tuple[list[T], bool]:
    """Return (this process's share of a group, as many as each other has; whether the last of it is a filler)."""
    own, most = list(world.share(group)), -(-len(group) // world.size)
    missing = most - len(own)  # 0 or 1
    return own + [group[-1]] * missing, missing > 0


def in_micro_batches(share: GroupShare, task: Task) -> GroupShare:
    """Return the share with its batches cut into micro-batches; of a filler, the first one is enough."""
    parts = [task.micro_batches(batch) for batch in share.batches]
    if share.has_filler:
        parts[-1] = parts[-1][:1]
    return GroupShare([part for batch in parts for part in batch], share.has_filler)


class TaskLoss(nn.Module):
    """The loss of a task as a module: DistributedDataParallel must see every use of a parameter inside one `forward`,
    and tasks also use the weights of the output layer outside of the model's own."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.model = task.model
        self.unused = nn.Parameter(torch.zeros(()))  # without one, torch warns that it looked for unused parameters
        self._task = task

    def forward(self, batch: Any, progress: Progress, shares: Tensor) -> tuple[Tensor, Tensor]:
        return self._task.loss(batch, progress, shares)


class GroupUpdater:
    """An `Updater` of groups of batches. Gradients are averaged by DistributedDataParallel if processes are connected.

    Which parameters a batch uses may differ, and no bucket is rebuilt after the first update: so a run that is resumed
    sums up gradients in the same order as one that was not interrupted.
    """

    def __init__(self, update: Updater, task: Task, world: World) -> None:
        self._updater, self._task, self._world = update, task, world
        self._loss: nn.Module = TaskLoss(task).to(update.device)
        if world.connected:
            self._loss = DistributedDataParallel(self._loss, find_unused_parameters=True, gradient_as_bucket_view=True)

    def __call__(self, share: GroupShare, progress: Progress) -> Tensor:
        """Update the model, and return the mean loss of the group, without gradient.

        On the CPU, raise a DivergedError before the weights change if the loss is NaN or infinite.
        """
        share = in_micro_batches(share, self._task)
        shares, baseline = self._shares(share), progress.baseline
        means = torch.zeros(2, device=shares.device)  # of the group: the loss to report, and the baseline
        self._updater.optimizer.zero_grad()
        for number, batch in enumerate(share.batches):
            progress.baseline = baseline  # all batches of an update have the same one
            with self._reduced(number + 1 == len(share.batches)):
                means += shares[number, 0] * self._gradient(batch, progress, shares[number])
        self._world.sum_(means)
        if progress.baseline is not None:
            progress.baseline = float(means[1])
        if not means.is_cuda and not bool(means[0].isfinite()):
            raise DivergedError
        self._updater.step()
        return means[0]

    def _shares(self, share: GroupShare) -> Tensor:
        """Return c_bk / Σ_b c_bk, float32 [batches of this process, terms of the loss]."""
        counts = torch.stack([self._task.loss_counts(batch) for batch in share.batches])
        if share.has_filler:
            counts[-1] = 0
        return counts / self._world.sum_(counts.sum(0)).clamp(min=torch.finfo(counts.dtype).tiny)

    def _reduced(self, last: bool) -> AbstractContextManager[object]:
        """Return a context in which gradients are added up in this process only, except those of the last batch."""
        loss = self._loss
        return loss.no_sync() if isinstance(loss, DistributedDataParallel) and not last else nullcontext()

    def _gradient(self, batch: Any, progress: Progress, shares: Tensor) -> Tensor:
        """Add the gradient of a batch, and return (its mean loss, its baseline or 0), [2]."""
        with autocast(self._updater.precision, self._updater.device):
            # DistributedDataParallel averages over processes, where a sum is meant.
            loss, mean_loss = self._loss(batch, progress, shares * self._world.size)
        loss.backward()
        return torch.stack([mean_loss.float(), mean_loss.new_full((), progress.baseline or 0.0, dtype=torch.float32)])
