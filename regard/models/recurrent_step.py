"""A recurrent decoder, one token further: the state that search carries on, and the step.

B sentences, S source positions, k hypotheses a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.core.memory import Memory
from regard.core.result import Result
from regard.models import cells
from regard.models.cells import Hidden
from regard.models.every_step import EveryStep

if TYPE_CHECKING:
    from regard.models.recurrent import Recurrent


@dataclass(frozen=True)
class State:
    """k hypotheses of B sentences, in mid-translation. Never changed; a step gives a new one."""

    hidden: tuple[Hidden, ...]
    """of each layer, [B, k, H]"""
    feed: Tensor
    """o_{t−1} [B, k, O]"""
    memory: Memory
    """keys [B, 1, S, ·]: hypotheses share them"""
    steps: Steps
    position: int = 0

    def select(self, parents: Tensor) -> State:
        """The hypotheses [B, k'] of each sentence, in the given order."""

        def pick(x: Tensor) -> Tensor:
            return x.gather(1, parents[..., None].expand(*parents.shape, x.shape[-1]))

        hidden = tuple(tuple(pick(x) for x in layer) for layer in self.hidden)
        return replace(self, hidden=hidden, feed=pick(self.feed))

    def keep(self, sentences: Tensor) -> State:
        """Only these sentences [B'], in the given order."""
        hidden = tuple(tuple(x[sentences] for x in layer) for layer in self.hidden)
        return replace(self, hidden=hidden, feed=self.feed[sentences], memory=self.memory.select(sentences))

    def held(self, steps: int) -> Held | None:
        """For so many steps that a GPU plays back; None: it could not."""
        if not self.memory.holds_still:
            return None
        hidden = tuple(tuple(x.clone() for x in layer) for layer in self.hidden)
        return Held(replace(self, hidden=hidden, feed=self.feed.clone()))

    @property
    def tensors(self) -> list[Tensor]:
        """All that a step changes."""
        return [*(x for layer in self.hidden for x in layer), self.feed]

    def changed(self, change: Callable[[Tensor], Tensor]) -> State:
        """The same, but every weight that falls on the source is changed before it counts."""
        return replace(self, memory=self.memory.changed(change))


@dataclass(frozen=True)
class Held:
    """A state whose tensors keep their places."""

    state: State

    def hold(self, after: State, parents: Tensor) -> None:
        """What the state is after a step, of the hypotheses [B, k]."""
        for old, new in zip(self.state.tensors, after.select(parents).tensors, strict=True):
            old.copy_(new)

    def released(self, steps: int) -> State:
        """As it is after so many steps."""
        return replace(self.state, position=self.state.position + steps)


class Steps:
    """The decoder's step, for one pass: weights are made ready once, and get their gradient once."""

    def __init__(self, model: Recurrent) -> None:
        options, recurrence = model.options, model.recurrence
        self._bahdanau = options.order == "bahdanau"
        weight, bias = weights_of(recurrence, "ih", 0)
        self._embedding = EveryStep(weight[:, : options.embedding], bias)
        by_feed = weight[:, options.embedding :]
        self._feed = EveryStep(by_feed) if options.input_feeding else None
        layers = range(options.decoder_layers)
        self._input = [EveryStep(*weights_of(recurrence, "ih", layer)) for layer in layers[1:]]
        self._state = [EveryStep(*weights_of(recurrence, "hh", layer)) for layer in layers]
        self._query = None if model.query is None else EveryStep(model.query.weight)
        self._output = EveryStep(model.combine.weight, model.combine.bias)
        self._vocabulary = model.output
        self._dropout = model.dropout

    def gates(self, embedded: Tensor) -> Tensor:
        """What the embedding brings to the first layer's gates: [..., D] → [..., 3H or 4H], for all steps at once."""
        return self._embedding(embedded)

    def output(self, joined: Tensor) -> Tensor:
        """o = tanh(W [s; c])"""
        return torch.tanh(self._output(joined))

    def logits(self, output: Tensor) -> Tensor:
        """E o + b, for search; training does it for all steps at once."""
        return self._logits(output)

    @cached_property
    def _logits(self) -> EveryStep:
        return EveryStep(self._vocabulary.weight, self._vocabulary.bias)

    def _read(self, state: Tensor, memory: Memory, position: int, weights: bool) -> Result:
        query = state if self._query is None else self._query(state)
        return memory.read(query[..., None, :], position=position, weights=weights)

    def __call__(
        self, gates: Tensor, hidden: tuple[Hidden, ...], output: Tensor, memory: Memory, position: int, weights: bool
    ) -> tuple[tuple[Hidden, ...], Tensor, Result]:
        """What y_{t−1} brings [..., 3H], s_{t−1}, o_{t−1} → (s_t, [s_t; c_t], what attention saw)."""
        seen: Result | None = None
        if self._bahdanau:
            seen = self._read(hidden[-1][0], memory, position, weights)
        if self._feed is not None:
            gates = gates + self._feed(output if seen is None else seen.context[..., 0, :])
        new: list[Hidden] = []
        for layer, (state, old) in enumerate(zip(self._state, hidden, strict=True)):
            if layer:
                gates = self._input[layer - 1](self._dropout(new[-1][0]))
            new.append(cells.step(gates, state(old[0]), old))
        top = new[-1][0]
        if seen is None:
            seen = self._read(top, memory, position, weights)
        return tuple(new), torch.cat([top, seen.context[..., 0, :].to(top.dtype)], -1), seen


def weights_of(recurrence: nn.Module, part: str, layer: int) -> tuple[Tensor, Tensor]:
    """(W, b) of "ih" or "hh" in a layer."""
    return getattr(recurrence, f"weight_{part}_l{layer}"), getattr(recurrence, f"bias_{part}_l{layer}")
