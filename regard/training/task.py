"""The interface of a task, which the training loop trains: batches, their loss, and validations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from regard.config.recipe import Recipe
from regard.runtime.distributed import ALONE, World
from regard.runtime.precision import Precision
from regard.training.checkpoint import Progress
from regard.training.plan import MAX_VALIDATION_SOURCES

Shares = Sequence[float] | Tensor  # the share of a batch in each term of the loss of an update
ONE: Shares = (1.0, 1.0)  # the shares of a batch that is the whole update in the terms of its loss
MakeBatch = Callable[[torch.device], Any]  # returns the batch on that device; `batch.tokens` is its size in the log


@dataclass(frozen=True)
class Validation:
    """The scores of a model on dev."""

    score: float
    """the score by which the best model is chosen: higher is better"""
    summary: str
    """the scores as text"""
    example: str
    """one source and the model's output"""
    facts: dict[str, Any] = field(default_factory=dict)
    """for the log: numbers, texts, and as `probes` traces of the same few sources at every validation"""
    loss: float | None = None
    """the mean loss on dev; while it falls, early stopping waits"""
    constant: str = ""
    """why the model is no better than a constant answer; empty if it is better"""


def evenly_spaced(count: int, most: int) -> list[int]:
    """Return the positions of at most `most` of `count` examples, evenly spaced.

    Files are often sorted, by length or by label: the first examples of dev would be the shortest, or of one label.
    """
    chosen = min(count, most)
    return [position * (count - 1) // max(1, chosen - 1) for position in range(chosen)]


class Task(ABC):
    """A model with its data."""

    recipe: Recipe  # with no value left open
    model: nn.Module
    dev: Sized  # the dev examples, as `evaluate` of the finished model takes them
    skipped: Sequence[str] = ()  # messages about examples that the recipe does not allow

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """entries of the card: the task, the data, and what using the model requires"""

    def write(self, folder: Path) -> None:  # noqa: B027
        """Write what the folder needs besides recipe, card and weights: vocabularies."""

    @property
    @abstractmethod
    def size(self) -> int:
        """the number of training examples"""

    @property
    def expected_epochs(self) -> int:
        """the epochs after which dev is expected to stop improving, where the recipe leaves their number open"""
        return 20

    @property
    def smallest_batch_fraction(self) -> float:
        """the smallest batch size, as a fraction of the recipe's; 1 if it must not change"""
        return 1.0

    @abstractmethod
    def batches_per_epoch(self) -> int:
        """Return the number of batches of an epoch, as far as it is known in advance."""

    @abstractmethod
    def epoch(self, number: int, batch_fraction: float = 1.0, canonical: bool = False) -> Sequence[MakeBatch]:
        """Return the batches of an epoch in order: a pure function of its number, of the batch size, a fraction of
        the recipe's, and of whether text has its `canonical` segmentation (a task may have no other)."""

    def place_on(self, device: torch.device) -> nn.Module:
        """Move the model, and whatever else its loss needs, to a device; return the model."""
        return self.model.to(device)

    def can_capture(self, device: torch.device) -> bool:
        """Return whether updates on this device can be captured as CUDA graphs. Then batches come in few shapes, all
        their tensors lie on the device, and the loss depends on these alone."""
        return False

    def micro_batches(self, batch: Any) -> Sequence[Any]:
        """Return the parts of a batch whose gradients are computed one after the other and added up; by default there
        is one, the batch itself."""
        return [batch]

    @abstractmethod
    def loss(self, batch: Any, progress: Progress, shares: Shares = ONE) -> tuple[Tensor, Tensor]:
        """Return (the loss to minimize; the mean loss to report, without gradient); may update `progress.baseline`.

        The loss is the sum of its terms, each multiplied by its share (`loss_counts`); the mean loss has no share.
        """

    def loss_counts(self, batch: Any) -> Tensor:
        """Return how many items each term of the loss is a mean over, float32 [terms] on the device of the batch.

        The first are those of the mean loss. If an update has several batches, the share of each in a term is its part
        of these (accumulation.py).
        """
        return self._counts(batch.tokens)

    def _counts(self, *counts: float | Tensor) -> Tensor:
        """Return counts as float32 on the model's device, without waiting for a GPU."""
        device = next(self.model.parameters()).device
        return torch.stack(
            [
                each.float() if isinstance(each, Tensor) else torch.full((), float(each), device=device)
                for each in counts
            ]
        )

    @abstractmethod
    def validate(
        self,
        number: int,
        device: torch.device,
        max_sources: int = MAX_VALIDATION_SOURCES,
        world: World = ALONE,
    ) -> Validation:
        """Score the model on `max_sources` of dev, evenly spaced; the `number`-th source is shown as the example.

        The processes of `world` share the work.
        """

    def rehearse(
        self, device: torch.device, precision: Precision, trained: bool, limit: float, world: World = ALONE
    ) -> float | None:
        """Measure on a sample how many seconds the final scoring of all of dev would take; None: unknown.

        `limit` is the time limit of the run in seconds. The outputs of a model that is not yet `trained` may have any
        length: they are taken to be as long as the references.
        """
        return None


class NewTask(Task):
    """A task with a new model, which follows from training examples, a recipe and a seed."""

    @classmethod
    @abstractmethod
    def of(cls, train: Any, dev: Any, recipe: Recipe, seed: int) -> Self:
        """Return the task with its initial model: a pure function, so that equal arguments give equal trainings."""
