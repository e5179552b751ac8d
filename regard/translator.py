"""A trained model in use: `regard.load(folder).translate("…")`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import torch

from regard import folder as folders
from regard.folder import Vocabularies
from regard.look.trace import Span, Trace
from regard.models.recurrent import Recurrent
from regard.scoring import Scores, group, score
from regard.search.beam import beam
from regard.search.hypothesis import Hypothesis, Length
from regard.search.walk import greedy, sample
from regard.text.batches import by_length, padded
from regard.text.normal import tidy
from regard.text.pairs import Pair
from regard.text.vocabulary import END, Vocabulary
from regard.training.precision import Precision, autocast, read_device
from regard.training.recipe import Recipe
from regard.training.setup import build, put

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


@dataclass(frozen=True)
class Search:
    """How translations are searched for."""

    beam: int = 5
    """1: greedy"""
    n_best: int = 1
    length_penalty: float = 1.0
    sample: bool = False
    """draw tokens at random instead"""
    temperature: float = 1.0
    among: int | None = None
    """draw only among so many"""

    def __post_init__(self) -> None:
        for name, least in (("beam", 1), ("n_best", 1)):
            given = getattr(self, name)
            if not isinstance(given, int) or given < least:
                raise ValueError(f"{name}: expected a whole number of at least {least}, got {given!r}")
        if self.n_best > self.beam and not self.sample:
            raise ValueError(f"n_best: expected at most the beam's {self.beam}, got {self.n_best}")
        if self.among is not None and (not isinstance(self.among, int) or self.among < 1):
            raise ValueError(f"among: expected a whole number of at least 1, got {self.among!r}")
        if not 0 < self.temperature < float("inf"):
            raise ValueError(f"temperature: expected a number above 0, got {self.temperature!r}")
        if not 0 <= self.length_penalty <= 100:
            raise ValueError(f"length_penalty: expected a number from 0 to 100, got {self.length_penalty!r}")


class Translator:
    """A model with its vocabularies, ready to translate."""

    def __init__(
        self,
        model: Recurrent,
        vocabularies: Vocabularies,
        recipe: Recipe,
        card: dict[str, Any],
        device: torch.device,
        precision: Precision = "auto",
    ) -> None:
        self.model = model.to(device).eval()
        self.vocabularies, self.recipe, self.card = vocabularies, recipe, card
        try:
            self.limit = Length(float(card["length"]["ratio"]), float(card["length"]["margin"]))
            self._longest = int(card["longest_source"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                "card.json: damaged: expected `length` with ratio and margin, and `longest_source`"
            ) from None
        self._device, self._precision = device, precision

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

    def answers(self, texts: Sequence[str], search: Search | None = None, prefix: str = "") -> list[Answer]:
        """The translations of each text with all that is known about them."""
        search = search or self.search
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"text: expected a text or a list of texts, got {text!r}")
        sources = [tidy(text) for text in texts]
        parts = [self._parts(source) for source in sources]
        flat = [part for some in parts for part in some]
        found = iter(self._search(flat, search, prefix))
        return [
            self._joined(source, some, [next(found) for _ in some]) for source, some in zip(sources, parts, strict=True)
        ]

    def evaluate(self, pairs: Sequence[Pair], search: Search | None = None) -> Scores:
        """The scores over all pairs: one translation for each distinct source, against all its references."""
        sources, references = group(pairs)
        return score(self.translate(sources, search), references)

    def _parts(self, source: str) -> list[str]:
        """The text, or its sentences if it is longer than what training saw; none of an empty one."""
        if not source:
            return []
        if len(self.vocabularies.source.encode(source)) + 1 <= self._longest:
            return [source]
        return [part for part in SENTENCE_END.split(source) if part]

    def _search(self, parts: Sequence[str], search: Search, prefix: str) -> Iterable[list[Translation]]:
        """Batches of like length; results in the order of `parts`."""
        pieces = [self.vocabularies.source.pieces(part) for part in parts]
        found: dict[int, list[Translation]] = {}
        start = self.vocabularies.target.encode(prefix) if prefix else None
        for rows in by_length(pieces, BATCH):
            tokens = [[*(piece.token for piece in pieces[row]), END] for row in rows]
            lengths = torch.tensor([len(row) for row in tokens])
            batch = padded(tokens).to(self._device)
            with autocast(self._precision, self._device):
                hypotheses = self._hypotheses(batch, lengths, search, None if start is None else [start] * len(rows))
            for row, some in zip(rows, hypotheses, strict=True):
                found[row] = [self._translation(parts[row], pieces[row], each) for each in some]
        return [found[index] for index in range(len(parts))]

    def _hypotheses(
        self, batch: torch.Tensor, lengths: torch.Tensor, search: Search, prefixes: list[list[int]] | None
    ) -> list[list[Hypothesis]]:
        if search.sample:
            draws = [
                sample(
                    self.model,
                    batch,
                    lengths,
                    self.limit,
                    temperature=search.temperature,
                    among=search.among,
                    prefixes=prefixes,
                )
                for _ in range(search.n_best)
            ]
            return [sorted(some, key=lambda x: -x.score) for some in zip(*draws, strict=True)]
        if search.beam == 1:
            return [[each] for each in greedy(self.model, batch, lengths, self.limit, prefixes)]
        return beam(
            self.model,
            batch,
            lengths,
            self.limit,
            width=search.beam,
            best=search.n_best,
            penalty=search.length_penalty,
            prefixes=prefixes,
        )

    def _translation(self, source: str, pieces: Sequence[Any], hypothesis: Hypothesis) -> Translation:
        text = self.vocabularies.target.decode(hypothesis.tokens)
        end = Span("", len(source), len(source))
        source_pieces = [*(Span(source[piece.start : piece.end], piece.start, piece.end) for piece in pieces), end]
        target_pieces = spans(self.vocabularies.target, hypothesis.tokens, text)
        if hypothesis.finished:
            target_pieces.append(Span("", len(text), len(text)))
        trace = Trace(source, text, source_pieces, target_pieces, hypothesis.weights)
        return Translation(text, hypothesis.score, hypothesis.log_probability, [trace])

    def _joined(self, source: str, parts: list[str], found: list[list[Translation]]) -> Answer:
        if not parts:
            return Answer(source, [Translation("", 0.0, 0.0, [])])
        if len(parts) == 1:
            notices = []
            if len(self.vocabularies.source.encode(source)) + 1 > self._longest:
                notices.append(f"longer than anything in training ({self._longest} tokens), and has no sentence ends")
            return Answer(source, found[0], notices)
        joined = []
        for rank in range(min(len(some) for some in found)):
            chosen = [some[rank] for some in found]
            text = " ".join(each.text for each in chosen)
            total = sum(each.log_probability for each in chosen)
            mean = sum(each.score for each in chosen) / len(chosen)
            joined.append(Translation(text, mean, total, [each.traces[0] for each in chosen]))
        notice = f"longer than anything in training ({self._longest} tokens): translated in {len(parts)} parts"
        return Answer(source, joined, [notice])


def spans(vocabulary: Vocabulary, tokens: Sequence[int], text: str) -> list[Span]:
    """Where each token of a decoded text stands: what the text grew by when it came."""
    found, before = [], ""
    for count in range(1, len(tokens) + 1):
        now = vocabulary.decode(tokens[:count])
        common = len(now) if now.startswith(before) else _shared(before, now)
        start = len(before) if now.startswith(before) else common
        start += text[start : start + 1] == " "
        end = max(min(len(now), len(text)), min(start, len(text)))
        found.append(Span(text[min(start, end) : end], min(start, end), end))
        before = now
    return found


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def load(folder: str | Path, device: str | None = None, precision: Precision = "auto") -> Translator:
    """A translator from its folder. Nothing is fetched or written."""
    path, where = Path(folder), read_device(device)
    card = folders.read_card(path)
    recipe, vocabularies = folders.read_recipe(path), folders.read_vocabularies(path)
    model = build(recipe, vocabularies)
    put(model, folders.read_weights(path))
    return Translator(model, vocabularies, recipe, card, where, precision)
