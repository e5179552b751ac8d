"""A translation model with packed weights, which many searches share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class SearchModel(Protocol):
    """The methods of a translation model that search needs."""

    def packed_decoder(self) -> Any:
        """Return the packed weights of a decoding step, in the dtype of the current autocast."""

    def start(self, source: Tensor, lengths: Tensor, packed: Any = None) -> Any: ...

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Any]: ...

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]: ...


@dataclass(frozen=True)
class PackedModel:
    """A model and its packed weights, with the methods that search needs. The weights are copies, which do not follow
    later updates of the model: build a new one after the model has changed."""

    model: SearchModel
    packed: Any

    @classmethod
    def of(cls, model: SearchModel) -> PackedModel:
        """Pack the weights of a model as they are now."""
        with torch.no_grad():
            return cls(model, model.packed_decoder())

    def start(self, source: Tensor, lengths: Tensor) -> Any:
        return self.model.start(source, lengths, self.packed)

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Any]:
        return self.model.step(state, tokens)

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        return self.model.attentions(source, lengths, target)
