"""A task: what the one loop trains. It makes batches, takes their loss, and looks at how far the model has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from regard.config.recipe import Recipe
from regard.runtime.precision import Precision
from regard.training.checkpoint import Progress
from regard.training.plan import VALIDATED

MakeBatch = Callable[[torch.device], Any]
"""the batch on that device; `batch.tokens` says how much it teaches"""


@dataclass(frozen=True)
class Validation:
    """How well a model does on dev."""

    score: float
    """what models are chosen by: higher is better"""
    told: str
    """the scores, as a person reads them"""
    example: str
    """one source and what becomes of it"""
    facts: dict[str, Any] = field(default_factory=dict)
    """for the log: numbers, texts, and as `probes` traces of the same few sources at every validation"""
    loss: float | None = None
    """the mean loss on dev; while it falls, early stopping waits"""
    constant: str = ""
    """in which way the model is no better than a constant answer; empty if it is better"""


class Task(Protocol):
    """A pure function of data, recipe and seed: two of them made alike train alike."""

    @property
    def recipe(self) -> Recipe:
        """with nothing left open"""

    @property
    def model(self) -> nn.Module:
        """untrained at first"""

    @property
    def dev(self) -> Sequence[Any]:
        """what `evaluate` of the finished model takes"""

    @property
    def facts(self) -> dict[str, Any]:
        """of the card: the task, the data, and what using the model needs to know"""

    def write(self, folder: Path) -> None:
        """What the folder needs beside recipe, card and weights: vocabularies."""

    @property
    def size(self) -> int:
        """how many examples there are to train on"""

    @property
    def smallest(self) -> float:
        """how small batches may be made, as a fraction of the recipe's; 1 if that must not be"""

    def updates(self) -> int:
        """in an epoch, as far as can be said beforehand"""

    def epoch(self, number: int, batch: float = 1.0) -> Sequence[MakeBatch]:
        """The batches of an epoch, in order: a pure function of the number and of the size of batches, a fraction of
        the recipe's."""

    def recorded(self, device: torch.device) -> bool:
        """May updates there be recorded and played back? Then batches come in few shapes, everything of them lies on
        the device, and the loss depends on that alone."""

    def loss(self, batch: Any, progress: Progress) -> tuple[Tensor, Tensor]:
        """(what is minimized; the mean loss that is told, without gradient). `progress` may note a running mean."""

    def validate(self, number: int, device: torch.device, most: int = VALIDATED) -> Validation:
        """Try the model on the first `most` sources of dev. The `number`-th validation shows the `number`-th source."""

    def rehearse(self, device: torch.device, precision: Precision, trained: bool) -> float | None:
        """Measure on a sample how many seconds the final scoring of all of dev would take; None: it cannot be told.

        If the model is not `trained`, what it says may be of any length: it is measured as if that were right.
        """
