"""One step of a recurrent decoder, and its state in search.

B sentences, S source positions, k hypotheses per sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor, nn

from regard.core.memory import Memory
from regard.core.result import Result
from regard.models.dropout import Dropout
from regard.models.recurrent import cells
from regard.models.recurrent.cells import Hidden
from regard.models.recurrent.options import RecurrentOptions
from regard.models.recurrent.shared_linear import SharedLinear


class DecoderLayers(Protocol):
    """The layers of a recurrent model that its steps use."""

    options: RecurrentOptions
    recurrence: nn.GRU | nn.LSTM
    query: nn.Linear | None
    combine: nn.Linear
    output: nn.Linear
    dropout: Dropout


@dataclass(frozen=True)
class RecurrentState:
    """The state of k unfinished hypotheses of each of B sentences. It is immutable: a step returns a new one."""

    hidden: tuple[Hidden, ...]  # the hidden state of each layer: tensors [B, k, H]
    feed: Tensor  # o_{t−1} [B, k, O]
    memory: Memory  # the source: keys [B, 1, S, ·], which all hypotheses share
    packed: RecurrentSteps
    position: int = 0

    def select(self, parents: Tensor) -> RecurrentState:
        """Return the state of the hypotheses `parents` [B, k'] of each sentence, in the given order."""

        def pick(x: Tensor) -> Tensor:
            return x.gather(1, parents[..., None].expand(*parents.shape, x.shape[-1]))

        hidden = tuple(tuple(pick(x) for x in layer) for layer in self.hidden)
        return replace(self, hidden=hidden, feed=pick(self.feed))

    def keep(self, sentences: Tensor) -> RecurrentState:
        """Return the state of the given sentences [B'] alone, in the given order."""
        hidden = tuple(tuple(x[sentences] for x in layer) for layer in self.hidden)
        return replace(self, hidden=hidden, feed=self.feed[sentences], memory=self.memory.select(sentences))

    def static(self, steps: int) -> RecurrentStaticState | None:
        """Return a copy in static buffers for a CUDA graph; None if that is impossible."""
        if not self.memory.ignores_position:
            return None
        hidden = tuple(tuple(x.clone() for x in layer) for layer in self.hidden)
        return RecurrentStaticState(replace(self, hidden=hidden, feed=self.feed.clone()))

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors that differ from step to step."""
        return [*(x for layer in self.hidden for x in layer), self.feed]

    @property
    def memories(self) -> tuple[Memory, ...]:
        """The keys and values of the source, which every step reads: one memory."""
        return (self.memory,)

    def with_memories(self, memories: Sequence[Memory]) -> RecurrentState:
        """Return a state that reads another memory."""
        (memory,) = memories
        return replace(self, memory=memory)

    def changed(self, change: Callable[[Tensor], Tensor]) -> RecurrentState:
        """Return a state in which `change` is applied to all attention weights before they are used."""
        return self.with_memories([memory.changed(change) for memory in self.memories])


@dataclass(frozen=True)
class RecurrentStaticState:
    """A state whose tensors are static buffers, which a CUDA graph updates in place."""

    state: RecurrentState

    def update_(self, after: RecurrentState, parents: Tensor) -> None:
        """Copy the state after a step into the buffers: that of the hypotheses [B, k] that the next step continues."""
        for old, new in zip(self.state.tensors, after.select(parents).tensors, strict=True):
            old.copy_(new)

    def snapshot(self, steps: int) -> RecurrentState:
        """Return the state after so many steps."""
        return replace(self.state, position=self.state.position + steps)


class RecurrentSteps:
    """The steps of one pass of the decoder: weights are cast once, and their gradient is computed once."""

    def __init__(self, model: DecoderLayers) -> None:
        options, recurrence = model.options, model.recurrence
        self._bahdanau = options.order == "bahdanau"
        weight, bias = weights_of(recurrence, "ih", 0)
        self.gates = SharedLinear(weight[:, : options.embedding], bias)
        """maps embeddings [..., D] to their products [..., 3H or 4H] for the first layer's gates; also all at once"""
        self._feed = SharedLinear(weight[:, options.embedding :]) if options.input_feeding else None
        layers = range(options.decoder_layers)
        self._input = [SharedLinear(*weights_of(recurrence, "ih", layer)) for layer in layers[1:]]
        self._state = [SharedLinear(*weights_of(recurrence, "hh", layer)) for layer in layers]
        self._query = None if model.query is None else SharedLinear(model.query.weight)
        self._output = SharedLinear(model.combine.weight, model.combine.bias)
        self._vocabulary, self._dropout = model.output, model.dropout

    def output(self, joined: Tensor) -> Tensor:
        """Return o = tanh(W [s; c])."""
        return torch.tanh(self._output(joined))

    @cached_property
    def logits(self) -> SharedLinear:
        """E o + b, for search; in training the model computes it for all steps at once."""
        return SharedLinear(self._vocabulary.weight, self._vocabulary.bias)

    def _read(self, state: Tensor, memory: Memory, position: int, weights: bool) -> Result:
        query = state if self._query is None else self._query(state)
        return memory.read(query[..., None, :], position=position, weights=weights)

    def __call__(
        self, gates: Tensor, hidden: tuple[Hidden, ...], output: Tensor, memory: Memory, position: int, weights: bool
    ) -> tuple[tuple[Hidden, ...], Tensor, Result]:
        """Return s_t, [s_t; c_t] and the result of attention. `gates` are the products [..., 3H or 4H] with y_{t−1},
        `hidden` is s_{t−1}, `output` o_{t−1}."""
        attended = self._read(hidden[-1][0], memory, position, weights) if self._bahdanau else None
        if self._feed is not None:
            gates = gates + self._feed(output if attended is None else attended.context[..., 0, :])
        new: list[Hidden] = []
        for layer, (state, old) in enumerate(zip(self._state, hidden, strict=True)):
            if layer:
                gates = self._input[layer - 1](self._dropout(new[-1][0]))
            new.append(cells.step(gates, state(old[0]), old))
        top = new[-1][0]
        if attended is None:
            attended = self._read(top, memory, position, weights)
        return tuple(new), torch.cat([top, attended.context[..., 0, :].to(top.dtype)], -1), attended


def weights_of(recurrence: nn.Module, part: str, layer: int) -> tuple[Tensor, Tensor]:
    """Return (W, b) of the input ("ih") or of the state ("hh") in a layer of an `nn.GRU` or `nn.LSTM`."""
    return getattr(recurrence, f"weight_{part}_l{layer}"), getattr(recurrence, f"bias_{part}_l{layer}")
