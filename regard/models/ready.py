"""A model made ready for many searches: what its steps multiply by is laid out once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class Stepping(Protocol):
    """A translation model, as far as search needs it."""

    def steps(self) -> Any:
        """What a step multiplies by, in the numbers that autocast asks for now."""

    def start(self, source: Tensor, lengths: Tensor, steps: Any = None) -> Any: ...

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Any]: ...

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]: ...


@dataclass(frozen=True)
class Ready:
    """The same to any search. It holds weights as they were when it was made, so it is made anew for each task."""

    model: Stepping
    steps: Any

    @classmethod
    def of(cls, model: Stepping) -> Ready:
        with torch.no_grad():
            return cls(model, model.steps())

    def start(self, source: Tensor, lengths: Tensor) -> Any:
        return self.model.start(source, lengths, self.steps)

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Any]:
        return self.model.step(state, tokens)

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        return self.model.attentions(source, lengths, target)
