"""A task: what the one loop trains. It makes batches, takes their loss, and looks at how far the model has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from regard.training.checkpoint import Progress
from regard.training.recipe import Recipe

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
    warning: str = ""
    """what is wrong, if anything is"""


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

    def updates(self) -> int:
        """in an epoch, as far as can be said beforehand"""

    def epoch(self, number: int) -> Sequence[MakeBatch]:
        """The batches of an epoch, in order: a pure function of the number."""

    def recorded(self, device: torch.device) -> bool:
        """May updates there be recorded and played back? Then batches come in few shapes, everything of them lies on
        the device, and the loss depends on that alone."""

    def loss(self, batch: Any, progress: Progress) -> tuple[Tensor, Tensor]:
        """(what is minimized; the mean loss that is told, without gradient). `progress` may note a running mean."""

    def validate(self, number: int, device: torch.device) -> Validation:
        """On dev; the `number`-th one shows the `number`-th source."""
