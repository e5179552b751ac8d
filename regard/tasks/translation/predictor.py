"""A trained model in use: `regard.load(folder).translate("…")`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, overload

import torch

from regard.config.folder import Vocabularies
from regard.config.recipe import Recipe
from regard.look.trace import Candidate, Side, Trace
from regard.metrics.translation import Scores, group, score
from regard.models.building import TranslationModel
from regard.models.ready import Ready
from regard.runtime.precision import Precision, autocast
from regard.search.beam import beam
from regard.search.distinct import n_best, samples
from regard.search.force_decode import ForcedDecoding, force_decode
from regard.search.hypothesis import DecoderModel, Hypothesis, LengthLimit
from regard.search.stepwise import greedy
from regard.tasks.translation.tracing import Tracer, candidates, wording
from regard.text.batches import by_length, padded
from regard.text.cutting import cut
from regard.text.lengths import LEAST_TOKENS
from regard.text.normal import tidy
from regard.text.pairs import Pair

BATCH = 64
SENTENCE_END = re.compile(r"(?<=[.?!])\s+|(?<=[।。])\s*(?=\S)")
"""a blank must follow . ? ! which also stand inside of words and numbers"""


@dataclass(frozen=True)
class Translation:
    """One translation of a text; of a long one, its parts are joined."""

    text: str
    score: float
    """the mean log-probability of a token, or what the length penalty makes of it: higher is better"""
    log_probability: float
    traces: list[Trace]
    """what was looked at, of each part"""


@dataclass(frozen=True)
class Answer:
    source: str
    translations: list[Translation]
    """the best first"""
    notices: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.translations[0].text

    def noting_fewer_than(self, wanted: int) -> Answer:
        """Return the answer with a notice if it has fewer translations than `wanted`, unless there was no text."""
        if len(self.translations) >= wanted or not self.source:
            return self
        notice = f"different translations found: {len(self.translations)}, of {wanted} asked for"
        return replace(self, notices=[*self.notices, notice])


@dataclass(frozen=True)
class Search:
    """How translations are searched for."""

    beam: int = 5
    """1: greedy"""
    n_best: int = 1
    """so many translations with different texts; fewer where no more are found"""
    length_penalty: float = 1.0
    sample: bool = False
    """draw tokens at random instead"""
    temperature: float = 1.0
    top_k: int | None = None
    """draw only from the k most probable tokens"""
    top_p: float | None = None
    """draw only from the most probable tokens whose probabilities sum to p"""

    def __post_init__(self) -> None:
        for name, least in (("beam", 1), ("n_best", 1)):
            given = getattr(self, name)
            if not isinstance(given, int) or given < least:
                raise ValueError(f"{name}: expected a whole number of at least {least}, got {given!r}")
        if self.n_best > self.beam and not self.sample:
            raise ValueError(f"n_best: expected at most the beam's {self.beam}, got {self.n_best}")
        if self.top_k is not None and (not isinstance(self.top_k, int) or self.top_k < 1):
            raise ValueError(f"top_k: expected a whole number of at least 1, got {self.top_k!r}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p: expected a number above 0 and up to 1, got {self.top_p!r}")
        if not 0 < self.temperature < float("inf"):
            raise ValueError(f"temperature: expected a number above 0, got {self.temperature!r}")
        if not 0 <= self.length_penalty <= 100:
            raise ValueError(f"length_penalty: expected a number from 0 to 100, got {self.length_penalty!r}")


class Translator:
    """A model with its vocabularies, ready to translate."""

    def __init__(
        self,
        model: TranslationModel,
        vocabularies: Vocabularies,
        recipe: Recipe,
        card: dict[str, Any],
        device: torch.device,
        precision: Precision = "auto",
    ) -> None:
        self.model = model.to(device).eval()
        self.vocabularies, self.recipe, self.card = vocabularies, recipe, card
        try:
            self.limit = LengthLimit(float(card["length"]["ratio"]), float(card["length"]["margin"]))
            self._longest = int(card["longest_source"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                "card.json: damaged: expected `length` with ratio and margin, and `longest_source`"
            ) from None
        self.device, self._precision = device, precision
        self._tracer, self._wording = Tracer(vocabularies, card), wording(vocabularies.target)

    def autocast(self) -> AbstractContextManager[object]:
        """In which the model computes, in the precision that was asked for."""
        return autocast(self._precision, self.device)

    def tokens(self, text: str) -> list[int]:
        """Of a source, with the end token."""
        return list(self._tracer.source(tidy(text)).tokens)

    def said(self, trace: Trace) -> list[int]:
        """The tokens of a trace's target."""
        return list(trace.target.tokens or self._tracer.told(trace.target.text).tokens)

    @property
    def search(self) -> Search:
        """As the recipe has it."""
        return Search(self.recipe.search.beam, length_penalty=self.recipe.search.length_penalty)

    @overload
    def translate(self, text: str, search: Search | None = None, prefix: str = "") -> str: ...  # type: ignore[overload-overlap]
    @overload
    def translate(self, text: Sequence[str], search: Search | None = None, prefix: str = "") -> list[str]: ...
    def translate(self, text: str | Sequence[str], search: Search | None = None, prefix: str = "") -> str | list[str]:
        """The translation of a text, or of each of several. `prefix`: how each must begin."""
        if not isinstance(text, (str, Sequence)):
            raise TypeError(f"text: expected a text or a list of texts, got {text!r}")
        texts = [text] if isinstance(text, str) else list(text)
        found = [answer.text for answer in self.answers(texts, search, prefix)]
        return found[0] if isinstance(text, str) else found

    def answers(
        self, texts: Sequence[str], search: Search | None = None, prefix: str = "", details: bool = False
    ) -> list[Answer]:
        """The translations of each text with what they looked at.

        `details`: the best one's trace tells also how sure each step was, what else it might have said, and what else
        the beam held.
        """
        search = search or self.search
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"text: expected a text or a list of texts, got {text!r}")
        sources = [tidy(text) for text in texts]
        parts = [self._parts(source) for source in sources]
        flat = [part for some in parts for part in some]
        found = iter(self._search(flat, search, prefix, details))
        return [
            self._joined(source, some, [next(found) for _ in some]).noting_fewer_than(search.n_best)
            for source, some in zip(sources, parts, strict=True)
        ]

    def evaluate(self, pairs: Sequence[Pair], search: Search | None = None) -> Scores:
        """The scores over all pairs: one translation for each distinct source, against all its references."""
        sources, references = group(pairs)
        return score(self.translate(sources, search), references)

    def force_decode(self, sources: Sequence[str], targets: Sequence[str]) -> list[Trace]:
        """What the model looks at, and how sure it is, if it must say each target."""
        if len(sources) != len(targets):
            raise ValueError(f"targets: expected one for each of {len(sources)} sources, got {len(targets)}")
        with self.autocast():
            return self._tracer.force_decode(self.model, sources, targets, self.device)

    def _parts(self, source: str) -> list[str]:
        """The text, or its sentences if it is longer than what training saw; none of an empty one. A sentence that is
        longer than training would take is cut at blanks, as attention's memory grows with the square of its length."""
        if not source:
            return []
        if len(self.vocabularies.source.encode(source)) + 1 <= self._longest:
            return [source]
        most = max(self._longest, self.recipe.training.max_tokens or LEAST_TOKENS)
        parts: list[str] = []
        for sentence in SENTENCE_END.split(source):
            pieces = self.vocabularies.source.pieces(sentence)
            parts += [sentence] if len(pieces) <= most else cut(sentence, pieces, self._longest)
        return [part for part in parts if part]

    def _search(self, parts: Sequence[str], search: Search, prefix: str, details: bool) -> Iterable[list[Translation]]:
        """Batches of like length; results in the order of `parts`."""
        sources = [self._tracer.source(part) for part in parts]
        found: dict[int, list[Translation]] = {}
        start = self.vocabularies.target.encode(prefix) if prefix else None
        wider = replace(search, n_best=max(search.n_best, search.beam)) if details and not search.sample else search
        with self.autocast():
            model = Ready.of(self.model)
        for rows in by_length([side.tokens for side in sources], BATCH):
            batch, lengths = self.batch([sources[row].tokens for row in rows])
            with self.autocast():
                prefixes = None if start is None else [start] * len(rows)
                hypotheses = self._hypotheses(model, batch, lengths, wider, prefixes)
                steps: Sequence[ForcedDecoding | None] = [None] * len(rows)
                if details:
                    steps = force_decode(model, batch, lengths, [some[0].output_tokens for some in hypotheses])
            for row, some, best in zip(rows, hypotheses, steps, strict=True):
                told = candidates(some, self.vocabularies.target) if details else []
                found[row] = [
                    self._translation(sources[row], each, None if rank else best, told)
                    for rank, each in enumerate(some[: search.n_best])
                ]
        return [found[index] for index in range(len(parts))]

    def batch(self, tokens: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Sources as the model takes them: (padded, lengths)"""
        return padded(tokens).to(self.device), torch.tensor([len(row) for row in tokens])

    def _hypotheses(
        self,
        model: DecoderModel,
        batch: torch.Tensor,
        lengths: torch.Tensor,
        search: Search,
        prefixes: list[list[int]] | None,
    ) -> list[list[Hypothesis]]:
        wording, limit, penalty = self._wording, self.limit, search.length_penalty
        if search.sample:
            drawn = search.temperature, search.top_k, search.top_p
            return samples(model, batch, lengths, limit, wording, search.n_best, prefixes, *drawn)
        if search.beam == 1:
            return [[each] for each in greedy(model, batch, lengths, limit, prefixes)]
        if search.n_best == 1:
            return beam(model, batch, lengths, limit, width=search.beam, penalty=penalty, prefixes=prefixes)
        return n_best(model, batch, lengths, limit, wording, search.n_best, prefixes, search.beam, penalty)

    def _translation(
        self, source: Side, hypothesis: Hypothesis, steps: ForcedDecoding | None, told: Sequence[Candidate]
    ) -> Translation:
        target = self._tracer.target(hypothesis.output_tokens)
        trace = self._tracer.trace(source, target, hypothesis.weights, steps, told)
        return Translation(target.text, hypothesis.score, hypothesis.log_probability, [trace])

    def _joined(self, source: str, parts: list[str], found: list[list[Translation]]) -> Answer:
        if not parts:
            return Answer(source, [Translation("", 0.0, 0.0, [])])
        if len(parts) == 1:
            notices = []
            if len(self.vocabularies.source.encode(source)) + 1 > self._longest:
                notices.append(f"longer than anything in training ({self._longest} tokens), and has no sentence ends")
            return Answer(source, found[0], notices)
        notice = f"longer than anything in training ({self._longest} tokens): translated in {len(parts)} parts"
        return Answer(source, joined(found), [notice])


def joined(parts: Sequence[Sequence[Translation]]) -> list[Translation]:
    """Join the translations of the parts of a text rank by rank; a part with fewer of them repeats its last one."""
    found = []
    for rank in range(max(map(len, parts))):
        chosen = [some[min(rank, len(some) - 1)] for some in parts]
        text = " ".join(each.text for each in chosen)
        total = sum(each.log_probability for each in chosen)
        mean = sum(each.score for each in chosen) / len(chosen)
        found.append(Translation(text, mean, total, [each.traces[0] for each in chosen]))
    return distinct_texts(found)


def distinct_texts(translations: Sequence[Translation]) -> list[Translation]:
    """Leave only the first translation of each text."""
    by_text: dict[str, Translation] = {}
    for each in translations:
        by_text.setdefault(each.text, each)
    return list(by_text.values())
