"""Protocols of the predictors for which evidence is computed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import torch
from torch import Tensor

from regard.config.folder import Vocabularies
from regard.look.trace import Trace
from regard.models.documents.classifier import TextClassifier
from regard.models.ensemble import AnyTranslationModel
from regard.search.hypothesis import LengthLimit
from regard.text.documents import Reader


class ExaminedTranslator(Protocol):
    """A translator for whose traces evidence is computed."""

    model: AnyTranslationModel
    vocabularies: Vocabularies
    limit: LengthLimit

    def autocast(self) -> AbstractContextManager[object]:
        """Compute in the precision that was asked for."""

    def source_tokens(self, text: str) -> list[int]:
        """Return the token ids of a source text, ending with the end token."""

    def target_tokens(self, trace: Trace) -> list[int]:
        """Return the token ids of a trace's target."""

    def batch(self, tokens: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return the sources as the model takes them: (padded token ids, lengths)."""


class ExaminedClassifier(Protocol):
    """A classifier for whose traces evidence is computed."""

    device: torch.device

    @property
    def model(self) -> TextClassifier: ...
    @property
    def reader(self) -> Reader: ...
    @property
    def labels(self) -> Sequence[str]: ...

    def autocast(self) -> AbstractContextManager[object]:
        """Compute in the precision that was asked for."""

    def logits(self, texts: Sequence[str]) -> Tensor:
        """Return the logits of the texts, [texts, labels]."""
