"""A recurrent decoder, one token further: the state that search carries on, and the step.

B sentences, S source positions, k hypotheses a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor, nn

from regard.core.memory import Memory
from regard.core.result import Result
from regard.models.recurrent import cells
from regard.models.recurrent.cells import Hidden
from regard.models.recurrent.every_step import EveryStep


class DecoderOptions(Protocol):
    """The options of a recurrent model that its steps depend on."""

    @property
    def order(self) -> str: ...
    @property
    def embedding(self) -> int: ...
    @property
    def input_feeding(self) -> bool: ...
    @property
    def decoder_layers(self) -> int: ...


class DecoderLayers(Protocol):
    """The layers of a recurrent model that its steps use."""

    @property
    def options(self) -> DecoderOptions: ...
    @property
    def recurrence(self) -> nn.Module: ...
    @property
    def query(self) -> nn.Linear | None: ...
    @property
    def combine(self) -> nn.Linear: ...
    @property
    def output(self) -> nn.Linear: ...
    @property
    def dropout(self) -> nn.Module: ...


@dataclass(frozen=True)
class State:
    """k unfinished hypotheses of B sentences. Never changed: a step returns a new one."""

    hidden: tuple[Hidden, ...]
    """of each layer, [B, k, H]"""
    feed: Tensor
    """o_{t−1} [B, k, O]"""
    memory: Memory
    """keys [B, 1, S, ·]: hypotheses share them"""
    steps: Steps
    position: int = 0

    def select(self, parents: Tensor) -> State:
        """Return the hypotheses [B, k'] of each sentence, in the given order."""

        def pick(x: Tensor) -> Tensor:
            return x.gather(1, parents[..., None].expand(*parents.shape, x.shape[-1]))

        hidden = tuple(tuple(pick(x) for x in layer) for layer in self.hidden)
        return replace(self, hidden=hidden, feed=pick(self.feed))

    def keep(self, sentences: Tensor) -> State:
        """Return the state of these sentences [B'] alone, in the given order."""
        hidden = tuple(tuple(x[sentences] for x in layer) for layer in self.hidden)
        return replace(self, hidden=hidden, feed=self.feed[sentences], memory=self.memory.select(sentences))

    def static(self, steps: int) -> Held | None:
        """Return a copy in static buffers for a CUDA graph; None if that is impossible."""
        if not self.memory.reads_alike:
            return None
        hidden = tuple(tuple(x.clone() for x in layer) for layer in self.hidden)
        return Held(replace(self, hidden=hidden, feed=self.feed.clone()))

    @property
    def tensors(self) -> list[Tensor]:
        """all that a step changes"""
        return [*(x for layer in self.hidden for x in layer), self.feed]

    def changed(self, change: Callable[[Tensor], Tensor]) -> State:
        """Return the state with every weight on the source changed before it is used."""
        return replace(self, memory=self.memory.changed(change))


@dataclass(frozen=True)
class Held:
    """A state in static buffers, which a CUDA graph updates in place."""

    state: State

    def update_(self, after: State, parents: Tensor) -> None:
        """Copy the state after a step, of the hypotheses [B, k], into the buffers."""
        for old, new in zip(self.state.tensors, after.select(parents).tensors, strict=True):
            old.copy_(new)

    def snapshot(self, steps: int) -> State:
        """Return the state after so many steps."""
        return replace(self.state, position=self.state.position + steps)


class Steps:
    """The decoder's step, for one pass: weights are made ready once, and get their gradient once."""

    def __init__(self, model: DecoderLayers) -> None:
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
