"""An ensemble of translation models, which search uses like a single one.

    log p(y_t) = log (1/M Σ_m softmax(z_m))        z_m: the logits of member m

Members may be of different kinds; they must have the same vocabularies. B sentences, k hypotheses per sentence,
S source positions, T target positions, V target tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.memory import Memory
from regard.core.scores import at_least_float32
from regard.models.building import TranslationModel
from regard.models.decoded import Decoded


@dataclass(frozen=True)
class EnsembleState:
    """The states of all members for the same hypotheses. It is immutable: a step returns a new one."""

    members: tuple[Any, ...]

    def select(self, parents: Tensor) -> EnsembleState:
        """Return the state of the hypotheses `parents` [B, k'] of each sentence, in the given order."""
        return EnsembleState(tuple(state.select(parents) for state in self.members))

    def keep(self, sentences: Tensor) -> EnsembleState:
        """Return the state of the given sentences [B'] alone, in the given order."""
        return EnsembleState(tuple(state.keep(sentences) for state in self.members))

    @property
    def memories(self) -> tuple[Memory, ...]:
        """The keys and values of the source that the layers of each member read, one member after the other."""
        return tuple(memory for state in self.members for memory in state.memories)

    def with_memories(self, memories: Sequence[Memory]) -> EnsembleState:
        """Return a state whose members read other memories of the source."""
        following = iter(memories)
        return EnsembleState(
            tuple(state.with_memories([next(following) for _ in state.memories]) for state in self.members)
        )

    def changed(self, change: Callable[[Tensor], Tensor]) -> EnsembleState:
        """Return a state in which `change` is applied to the attention weights of all members."""
        return self.with_memories([memory.changed(change) for memory in self.memories])

    def static(self, steps: int) -> EnsembleStaticState | None:
        """Return a copy in static buffers with room for so many further steps; None if a member has none."""
        members = [state.static(steps) for state in self.members]
        return None if None in members else EnsembleStaticState(tuple(members))


@dataclass(frozen=True)
class EnsembleStaticState:
    """The states of all members in static buffers, which a CUDA graph updates in place."""

    members: tuple[Any, ...]

    @property
    def state(self) -> EnsembleState:
        """The state that the buffers hold."""
        return EnsembleState(tuple(static.state for static in self.members))

    def update_(self, after: EnsembleState, parents: Tensor) -> None:
        """Copy the state after a step into the buffers: that of the hypotheses [B, k] that the next step continues."""
        for static, state in zip(self.members, after.members, strict=True):
            static.update_(state, parents)

    def snapshot(self, steps: int) -> EnsembleState:
        """Return the state after so many steps."""
        return EnsembleState(tuple(static.snapshot(steps) for static in self.members))


class EnsembleModel(nn.Module):
    """Several translation models with the same vocabularies. Its logits are log-probabilities."""

    def __init__(self, members: Sequence[TranslationModel]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    @property
    def models(self) -> list[TranslationModel]:
        """The members, with their type."""
        return list(self.members)  # type: ignore[arg-type]

    @property
    def source_embeddings(self) -> tuple[nn.Module, ...]:
        """The modules that embed the source's tokens, each once."""
        return tuple(dict.fromkeys(embedding for model in self.models for embedding in model.source_embeddings))

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Decoded:
        """Decode target [B, T], which begins with the start token, given source [B, S] of `lengths` [B]; the output is
        the log-probabilities [B, T, V]."""
        return Decoded(mean_log_probs([x.logits(x(source, lengths, target).output) for x in self.models]), None)

    def logits(self, output: Tensor) -> Tensor:
        """Return the logits [..., V] of an output of `forward`: they are the same."""
        return output

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the members' weights: "encoder" [B, L, H, S, S], "decoder" [B, L, H, T, T], "cross" [B, L, H, T, S].

        An attention that only some members have is that of those.
        """
        by_member = [model.attentions(source, lengths, target) for model in self.models]
        names = dict.fromkeys(name for weights in by_member for name in weights)
        return {name: side_by_side([each[name] for each in by_member if name in each], 1) for name in names}

    def packed_decoder(self) -> tuple[Any, ...]:
        """Return the packed weights of all members."""
        return tuple(model.packed_decoder() for model in self.models)

    def start(self, source: Tensor, lengths: Tensor, packed: tuple[Any, ...] | None = None) -> EnsembleState:
        """Return the state of one hypothesis per sentence, before its first token."""
        own = self.packed_decoder() if packed is None else packed
        pairs = zip(self.models, own, strict=True)
        return EnsembleState(tuple(model.start(source, lengths, weights) for model, weights in pairs))

    def step(self, state: EnsembleState, tokens: Tensor) -> tuple[Tensor, Tensor, EnsembleState]:
        """Feed the last tokens [B, k]; return (log p [B, k, V], weights [B, k, L, H, S], the next state)."""
        steps = [model.step(own, tokens) for model, own in zip(self.models, state.members, strict=True)]
        logits, weights, states = zip(*steps, strict=True)
        return mean_log_probs(logits), side_by_side(weights, 2), EnsembleState(states)


AnyTranslationModel = TranslationModel | EnsembleModel


def mean_log_probs(logits: Sequence[Tensor]) -> Tensor:
    """Return log (1/M Σ_m softmax(z_m)) [..., V] for the logits z_m [..., V] of M members."""
    by_member = [torch.log_softmax(at_least_float32(each), -1) for each in logits]
    return torch.stack(by_member).logsumexp(0) - math.log(len(by_member))


def side_by_side(weights: Sequence[Tensor], layers: int) -> Tensor:
    """Return the members' weights [..., L, H, …, S] in one tensor, whose mean over layers and heads is the mean over
    members of each one's mean. `layers` is the dimension of L.

    Members of equal shapes [L, H] stand side by side as heads, [L, M · H]; others are represented by the mean of their
    own layers and heads, [1, M]. Weights of single heads are not averaged: those of different models have nothing in
    common.
    """
    if len({each.shape for each in weights}) > 1:
        weights = [each.float().mean((layers, layers + 1), keepdim=True) for each in weights]
    return torch.cat(list(weights), layers + 1)
