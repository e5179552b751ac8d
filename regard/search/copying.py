"""Search that writes each placeholder at most as often as the source has it, and only where it is sure to; none at all
for sources without placeholders.

A model that has seen placeholders inserted into sources writes those that fill a place in the sentence. `margin` is
subtracted from their logits, so that it leaves out those of which it is not sure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.runtime.device_cache import device_constant
from regard.search.hypothesis import DecoderModel
from regard.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class PlaceholderFreeModel:
    """A model whose logits are −inf for all placeholders. Its states are those of the model."""

    model: DecoderModel
    target: Tensor  # [P]: the token ids of the placeholders

    def start(self, source: Tensor, lengths: Tensor) -> Any:
        return self.model.start(source, lengths)

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Any]:
        logits, weights, after = self.model.step(state, tokens)
        return logits.index_fill_(-1, self.target, -torch.inf), weights, after

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        return self.model.attentions(source, lengths, target)


def without_placeholders(model: DecoderModel, target: Vocabulary, device: torch.device) -> DecoderModel:
    """Return the model as search needs it for sources without placeholders."""
    return PlaceholderFreeModel(model, _ids(target, device)) if target.has_placeholders else model


def _ids(vocabulary: Vocabulary, device: torch.device) -> Tensor:
    """Return the token ids of the placeholders [P]."""
    return device_constant(vocabulary.placeholder_ids, torch.int64, device)


@dataclass(frozen=True)
class CopyingState:
    """The state of a model, and how often each of the P placeholders may still be written."""

    inner: Any
    left: Tensor  # [B, k, P]

    def select(self, parents: Tensor) -> CopyingState:
        chosen = self.left.gather(1, parents[..., None].expand(-1, -1, self.left.shape[-1]))
        return CopyingState(self.inner.select(parents), chosen)

    def keep(self, sentences: Tensor) -> CopyingState:
        return CopyingState(self.inner.keep(sentences), self.left[sentences])

    def static(self, steps: int) -> None:
        """Return None: the steps are not captured as a CUDA graph."""


@dataclass(frozen=True)
class CopyingModel:
    """A model whose logits are −inf for placeholders that the source does not have, or that were written already."""

    model: DecoderModel
    source: Tensor  # [P]: the token ids of the placeholders on either side
    target: Tensor
    margin: float = 0.0

    @classmethod
    def of(
        cls, model: DecoderModel, source: Vocabulary, target: Vocabulary, device: torch.device, margin: float
    ) -> CopyingModel:
        """Return the model for vocabularies that have placeholders."""
        return cls(model, _ids(source, device), _ids(target, device), margin)

    def start(self, source: Tensor, lengths: Tensor) -> CopyingState:
        counts = (source[:, :, None] == self.source).sum(1)  # [B, P]
        return CopyingState(self.model.start(source, lengths), counts[:, None])

    def step(self, state: CopyingState, tokens: Tensor) -> tuple[Tensor, Tensor, CopyingState]:
        left = state.left - (tokens[..., None] == self.target).long()  # [B, k, P]
        logits, weights, after = self.model.step(state.inner, tokens)
        allowed = (logits[..., self.target] - self.margin).masked_fill(left <= 0, -torch.inf)
        return logits.index_copy(-1, self.target, allowed), weights, CopyingState(after, left)

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        return self.model.attentions(source, lengths, target)
