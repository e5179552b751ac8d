"""Training examples from memory-mapped files; their variations are a pure function of (seed, epoch, batch)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from regard.corpora.arrays import Ints
from regard.corpora.order import LengthOrder, OrderedEpoch
from regard.corpora.tokens import StoredTokens
from regard.text.examples import Example, Form, Variety, varied_text
from regard.text.pairs import Pair
from regard.text.variation import Segmentations
from regard.text.vocabulary import Vocabulary

MAX_WORDS = 200_000  # segmentations after which a new generation begins; two are remembered for each side: about 80 MB
GROWTH_BATCHES, GROWTH_ROWS = 64, 32  # batches, and their rows, on which it is measured how much variation adds
AHEAD = 4  # batches that are made in advance, by another thread


class PairTexts(Protocol):
    """The texts of one source of data."""

    def __len__(self) -> int: ...

    def pair(self, row: int) -> Pair:
        """Return the pair of a row."""


@dataclass(frozen=True)
class StoredPart:
    """The texts and tokens of one source of data."""

    texts: PairTexts
    tokens: StoredTokens

    def example(self, row: int) -> Example:
        """Return the example of a row, without variation."""
        return Example(self.tokens.source[row].tolist(), self.tokens.target[row].tolist())


class WordSegmentations:
    """Maps a word and the number of one of its segmentations to token ids, which are remembered."""

    def __init__(self, vocabulary: Vocabulary, dropout: float, seed: int) -> None:
        self._vocabulary = vocabulary
        self._segmentations = Segmentations(vocabulary, dropout, seed)
        self._count = self._segmentations.count
        self._tokens: dict[tuple[str, int], list[int]] = {}
        self._older: dict[tuple[str, int], list[int]] = {}  # those of the generation before

    def __call__(self, texts: Sequence[str], rng: np.random.Generator) -> list[list[int]]:
        """Return the token ids of tidied texts, with a segmentation drawn for each word."""
        words = [text.split(" ") for text in texts]
        numbers = iter(rng.integers(self._count, size=sum(map(len, words))).tolist())
        rows: list[list[int]] = []
        for row in words:
            tokens: list[int] = []
            for word in row:
                key = word, next(numbers)
                ids = self._tokens.get(key)
                tokens += self._new(key) if ids is None else ids
            rows.append(tokens)
        return rows

    def _new(self, key: tuple[str, int]) -> list[int]:
        """Return the tokens of a word that has not occurred in this generation, and remember them."""
        if len(self._tokens) >= MAX_WORDS:
            self._tokens, self._older = {}, self._tokens
        word, number = key
        ids = self._older.get(key)
        if ids is None:
            chunks = self._vocabulary.chunks(word)
            ids = [token for chunk in chunks for token in self._segmentations(chunk, number)]
        self._tokens[key] = ids
        return ids


class StoredExamples:
    """The training examples of a corpus in memory-mapped files. Rows are counted over all parts."""

    def __init__(
        self,
        parts: Sequence[StoredPart],
        order: LengthOrder,
        vocabularies: tuple[Vocabulary, Vocabulary],
        variety: Variety,
        seed: int,
    ) -> None:
        self._parts, self._order, self._vocabularies = parts, order, vocabularies
        self._variety, self._seed = variety, seed
        self._offsets = np.cumsum([0, *(len(part.texts) for part in parts)])
        self._segmentations = [
            WordSegmentations(vocabulary, variety.segmentation, seed + side)
            for side, vocabulary in enumerate(vocabularies)
        ]

    def __len__(self) -> int:
        return len(self._order)

    def epoch(self, number: int, sentences: int, tokens: int, canonical: bool = False) -> StoredEpoch:
        """Return the batches of an epoch; `canonical`: in canonical segmentation.

        They are made by the lengths without variation, with room for what variation adds on average.
        """
        ordered, growth = self._order.epoch(self._seed, number), 1.0 if canonical else self.growth
        places = ordered.batches(sentences, max(1, round(tokens / growth)))
        return StoredEpoch(self, number, ordered, places, canonical)

    @cached_property
    def growth(self) -> float:
        """how many times as long the longest examples of batches are with variation as without it"""
        if not self._variety.segmentation:
            return 1.0
        rng, before, after = np.random.default_rng([self._seed, 3]), 0, 0
        for first in np.linspace(0, max(0, len(self) - GROWTH_ROWS), GROWTH_BATCHES).astype(np.int64).tolist():
            rows = self._order.rows[first : first + GROWTH_ROWS]
            before += max(len(side) for part, row in self._places(rows) for side in part.example(row))
            after += max(len(side) for example in self.examples(rows, rng) for side in example)
        return max(1.0, after / max(1, before))

    def examples(self, rows: Ints, rng: np.random.Generator, canonical: bool = False) -> list[Example]:
        """Return the examples of the rows, each in a form drawn for it; `canonical`: in canonical segmentation."""
        variety, places = self._variety, self._places(rows)
        variety = replace(variety, segmentation=0.0) if canonical else variety
        if variety == Variety():
            return [part.example(row) for part, row in places]
        fractions = variety.lower_case, variety.no_stop, variety.no_punctuation
        forms = map(Form, *((rng.random(len(rows)) < fraction).tolist() for fraction in fractions))
        formed = zip(places, forms, strict=True)
        if not variety.segmentation:
            return [
                self._encode(part.texts.pair(row), form) if any(form) else part.example(row)
                for (part, row), form in formed
            ]
        texts = [varied_text(part.texts.pair(row), form) for (part, row), form in formed]
        sides = [
            segment(side, rng) for segment, side in zip(self._segmentations, zip(*texts, strict=True), strict=True)
        ]
        return [Example(*both) for both in zip(*sides, strict=True)]

    def _encode(self, pair: Pair, form: Form) -> Example:
        """Return a pair in the given form, segmented by the vocabularies."""
        texts = zip(self._vocabularies, varied_text(pair, form), strict=True)
        return Example(*(vocabulary.encode(text) for vocabulary, text in texts))

    def _places(self, rows: Ints) -> list[tuple[StoredPart, int]]:
        """Return the part of each row, and its number there."""
        parts = np.searchsorted(self._offsets, rows, "right") - 1
        within = rows - self._offsets[parts]
        return [(self._parts[part], row) for part, row in zip(parts.tolist(), within.tolist(), strict=True)]

    def batch(
        self, epoch: int, ordered: OrderedEpoch, first: int, last: int, canonical: bool = False
    ) -> tuple[list[int], list[Example]]:
        """Return rows and examples of a batch, which are at these places of an epoch."""
        rows = ordered.rows(np.arange(first, last))
        return rows.tolist(), self.examples(rows, np.random.default_rng([self._seed, epoch, 4, first]), canonical)


class StoredEpoch:
    """The batches of an epoch. When one is asked for, another thread begins to make the next ones."""

    def __init__(
        self, stored: StoredExamples, number: int, ordered: OrderedEpoch, places: Ints, canonical: bool
    ) -> None:
        """`places` [B, 2]: where in the epoch each batch begins and ends."""
        self._stored, self._number, self._ordered, self._places = stored, number, ordered, places
        self._canonical = canonical
        self._thread = ThreadPoolExecutor(1)
        self._pending: dict[int, Future[tuple[list[int], list[Example]]]] = {}
        self._previous = len(places)  # the number of the batch that was asked for last

    def __len__(self) -> int:
        return len(self._places)

    def batch(self, index: int) -> tuple[list[int], list[Example]]:
        """Return the rows and the examples of a batch."""
        step = max(1, index - self._previous)  # one of several processes asks for every second batch, say
        self._previous, wanted = index, range(index, min(len(self), index + 1 + AHEAD * step), step)
        self._pending = {each: self._pending.get(each) or self._thread.submit(self._make, each) for each in wanted}
        return self._pending[index].result()

    def _make(self, index: int) -> tuple[list[int], list[Example]]:
        first, last = self._places[index].tolist()
        return self._stored.batch(self._number, self._ordered, first, last, self._canonical)
