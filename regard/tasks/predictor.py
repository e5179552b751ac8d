"""What all trained models in use share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import nn

from regard.config.recipe import Recipe
from regard.runtime.precision import Precision, autocast

M = TypeVar("M", bound=nn.Module)


class ScoreReport(Protocol):
    """Scores on a data set."""

    def as_dict(self) -> dict[str, Any]:
        """Return the scores for JSON and for the card."""

    def lines(self) -> list[str]:
        """Return the scores as a person reads them."""


def text_list(text: str | Sequence[str]) -> list[str]:
    """Return a text or several as a list; raise a TypeError for anything else."""
    texts = list(text) if isinstance(text, Sequence) and not isinstance(text, str) else [text]
    for each in texts:
        if not isinstance(each, str):
            raise TypeError(f"text: expected a text or a list of texts, got {each!r}")
    return texts


@dataclass(eq=False, repr=False)
class Predictor(ABC, Generic[M]):
    """A trained model in use, on its device."""

    model: M
    recipe: Recipe
    card: dict[str, Any]
    device: torch.device
    precision: Precision

    def __post_init__(self) -> None:
        if not any(parameter.is_meta for parameter in self.model.parameters()):  # otherwise it has no weights yet
            self.model.to(self.device)
        self.model.eval()

    def autocast(self) -> AbstractContextManager[object]:
        """Return a context in which the model computes in the precision that was asked for."""
        return autocast(self.precision, self.device)

    @abstractmethod
    def evaluate(self, examples: Any) -> ScoreReport:
        """Return the scores on dev examples, as the task has them."""
