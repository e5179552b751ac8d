"""The attention of one decoding step in full: queries, keys, energies, weights, values and contexts of every head; and
the same step with other parts of attention.

    energies = score(query, keys),      weights = normalizer(energies),      context = weights · values

The numbers are those that the model computes with. H heads, S source positions, D features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Unpack

import torch
from torch import Tensor

from regard.core.attention import SCORES, plan, read_normalizer, read_pattern
from regard.core.checks import positive
from regard.core.memory import Memory
from regard.core.normalizers import Entmax, Entmax15, Hard, Softmax
from regard.core.observe import run_with_outputs
from regard.core.plan import Plan
from regard.core.reference import masked_energies
from regard.core.request import ReadOptions, Request
from regard.core.result import Result
from regard.core.scores import AdditiveTerms, PrecomputedTerms, Terms, terms_of
from regard.evidence.subject import ExaminedTranslator
from regard.text.vocabulary import START


@dataclass(frozen=True)
class Alteration:
    """Parts of attention that replace the model's own; None: the model's own part."""

    score: str | None = None
    """a name in `SCORES`; it compares the same vectors as the model's own score: projected queries and keys"""
    normalizer: str | None = None
    pattern: str | None = None
    """as text; the query is at the position of the step"""
    temperature: float = 1.0
    """the energies are divided by it"""

    def __post_init__(self) -> None:
        positive("alteration", "temperature", self.temperature)
        if self.score is not None and self.score not in SCORES:
            raise ValueError(f"score: expected one of {', '.join(map(repr, SCORES))}, got {self.score!r}")
        if self.normalizer is not None:
            read_normalizer(self.normalizer)
        if self.pattern is not None:
            read_pattern(self.pattern)

    def plan(self, own: Request, position: int) -> Plan:
        """Return the plan of a step at `position` with these parts instead of those of the model's own request."""
        title = own.score.title if self.score is None else SCORES[self.score]().title
        return plan(
            own.query,
            own.key,
            own.value,
            score=PrecomputedTerms(self._terms(own), title),
            pattern=own.pattern if self.pattern is None else self.pattern,
            normalizer=own.normalizer if self.normalizer is None else self.normalizer,
            position=position,
        )

    def _terms(self, own: Request) -> Terms:
        terms = model_terms(own)
        if self.score is not None:
            score = SCORES[self.score]()
            terms = terms_of(score, terms.query, score.key_side(terms.key))
        if isinstance(terms, AdditiveTerms):
            return terms._replace(vector=terms.at_temperature(self.temperature)[1])
        return terms._replace(scale=terms.at_temperature(self.temperature)[0])


@dataclass(frozen=True)
class Place:
    """A head of a layer."""

    layer: int
    head: int


@dataclass(frozen=True)
class AttentionRead:
    """One attention of one query, by heads: what was computed, and the result."""

    request: Request
    result: Result
    temperature: float = 1.0
    """by which the energies were divided"""

    @property
    def terms(self) -> Terms:
        """q' [1, H, 1, D] and k' [1, H, S, D], which the score compares: the projected query and keys"""
        return model_terms(self.request)

    @property
    def values(self) -> Tensor:
        """[H, S, Dv]"""
        return self.request.value.expand(*self.request.leading, -1, -1)[0]

    @property
    def energies(self) -> Tensor:
        """[H, S], after the temperature; those that the pattern hides too"""
        return self.terms.energies()[0, :, 0]

    @property
    def allowed(self) -> Tensor:
        """bool [H, S]: the keys that the pattern lets the query attend to"""
        return self._masked[0][0, :, 0] > -torch.inf

    @property
    def gain(self) -> Tensor | None:
        """[H, S] by which predictive local attention multiplies the weights; None for every other pattern"""
        gain = self._masked[1]
        return None if gain is None else gain.expand(*self.request.leading, 1, -1)[0, :, 0]

    @cached_property
    def _masked(self) -> tuple[Tensor, Tensor | None]:
        """(energies with −inf where the pattern hides a key, gain)"""
        return masked_energies(self.request, self.terms.energies())

    @property
    def weights(self) -> Tensor:
        """[H, S]"""
        assert self.result.weights is not None
        return self.result.weights[0, :, 0]

    @property
    def context(self) -> Tensor:
        """[H, Dv]"""
        return self.result.context[0, :, 0]

    @property
    def threshold(self) -> Tensor | None:
        """[H]: θ of sparsemax, max(e − θ, 0), and of entmax15, max(e/2 − θ, 0)²; None for other normalizers"""
        normalizer = self.request.normalizer
        if isinstance(normalizer, (Softmax, Hard)):
            return None
        energies = self._masked[0][0, :, 0]
        assert isinstance(normalizer, Entmax)
        weights = normalizer(energies)
        if isinstance(normalizer, Entmax15):
            return energies.amax(-1) / 2 - weights.amax(-1).sqrt()
        return energies.amax(-1) - weights.amax(-1)


def model_terms(request: Request) -> Terms:
    """Return the terms of a request of a translation model, all of whose scores have some."""
    if request.terms is None:
        raise ValueError(f"score: expected a bilinear or additive one, got {request.score.title}")
    return request.terms


@dataclass(frozen=True)
class ObservedMemory(Memory):
    """A memory that records every read of it, with other parts of attention if there is an alteration."""

    reads: list[AttentionRead] = field(default_factory=list, repr=False, compare=False)
    alteration: Alteration | None = None
    head: int | None = None
    """the head that is altered; None: all"""
    step: int = 0
    """the position of the query, for altered patterns"""

    @classmethod
    def around(cls, memory: Memory, **options: Any) -> ObservedMemory:
        """Return a memory with the same states."""
        return cls(**{each.name: getattr(memory, each.name) for each in fields(memory)}, **options)

    def read(self, query: Tensor, **options: Unpack[ReadOptions]) -> Result:
        """Read as a `Memory` does, and record it. The result always has weights."""
        options["weights"] = True
        own = super().read(query, **options)
        request = self.request(query, position=options.get("position", 0))
        if self.alteration is None:
            self.reads.append(AttentionRead(request, own))
            return own
        altered = self.alteration.plan(request, self.step)
        result = run_with_outputs(altered, weights=True)
        self.reads.append(AttentionRead(altered.request, result, self.alteration.temperature))
        return result if self.head is None else _with_head(own, result, self.head)


def _with_head(own: Result, other: Result, head: int) -> Result:
    """Return the result with one head from `other`."""
    assert own.weights is not None and other.weights is not None
    chosen = torch.arange(own.weights.shape[-3], device=own.weights.device)[:, None, None] == head
    context = torch.where(chosen, other.context, own.context)
    return replace(own, context=context, weights=torch.where(chosen, other.weights, own.weights))


@dataclass(frozen=True)
class ObservedStep:
    """One step of a decoder: its attention, layer by layer, and the log-probabilities [V] of the next token."""

    reads: list[AttentionRead]
    log_probs: Tensor


class PausedDecoder:
    """A translator's decoder before its next step, which can be observed again and again.

    It computes in float32, whatever the translator's precision is, so that the numbers of a step fit together.
    """

    def __init__(self, translator: ExaminedTranslator, source: Sequence[int], prefix: Sequence[int]) -> None:
        """`source`: token ids, ending with the end token; `prefix`: the token ids of the target so far."""
        self._model, self._tokens = translator.model, [START, *prefix]
        batch, lengths = translator.batch([source])
        with torch.no_grad():
            self._state: Any = translator.model.start(batch, lengths)
            for token in self._tokens[:-1]:
                _, _, self._state = self._step(self._state, token)

    def observe(self, alteration: Alteration | None = None, place: Place | None = None) -> ObservedStep:
        """Return the next step, with an alteration of the head at `place`, or of all heads of all layers."""
        reads: list[AttentionRead] = []
        memories = []
        for layer, memory in enumerate(self._state.memories):
            here = alteration if place is None or place.layer == layer else None
            options = {"reads": reads, "alteration": here, "head": None if place is None else place.head}
            memories.append(ObservedMemory.around(memory, **options, step=len(self._tokens) - 1))
        with torch.no_grad():
            logits, _, _ = self._step(self._state.with_memories(memories), self._tokens[-1])
        return ObservedStep(reads, torch.log_softmax(logits[0, 0].float(), -1))

    def _step(self, state: Any, token: int) -> tuple[Tensor, Tensor, Any]:
        tokens = torch.tensor([[token]], device=state.memories[0].key.device)
        return self._model.step(state, tokens)
