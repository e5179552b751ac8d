"""Training examples: the token ids of sentence pairs, varied in every epoch by a pure function of (seed, epoch)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from regard.text.normal import tidy
from regard.text.pairs import Pair
from regard.text.placeholders import VARIANTS, Anchor, with_placeholders
from regard.text.punctuation import without_punctuation, without_stop
from regard.text.shown_terms import LinkedTerm, with_annotations, with_marks
from regard.text.variation import IntArray, Segmentations
from regard.text.vocabulary import Vocabulary


class Example(NamedTuple):
    """The token ids of a sentence pair, without start and end tokens."""

    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class Variety:
    """How often the form of an example is varied."""

    segmentation: float = 0.0  # the fraction of merges left out (BPE-dropout)
    lower_case: float = 0.0  # the fraction of sources in lower case
    no_stop: float = 0.0  # the fraction of pairs without their final full stops
    no_punctuation: float = 0.0  # the fraction of pairs without punctuation
    placeholders: float = 0.0  # the fraction of pairs with placeholders
    terms: float = 0.0  # the fraction of pairs whose source shows terms


class Form(NamedTuple):
    """How the text of an example is varied."""

    lower: bool
    no_stop: bool
    no_punctuation: bool
    placeholders: int = 0  # 0: none, else the number of the variant
    terms: int = 0  # likewise, of the terms that are shown


def plain_examples(pairs: Sequence[Pair], source: Vocabulary, target: Vocabulary) -> list[Example]:
    """Return the examples of pairs without any variation."""
    sides = source.encode_all(pair.source for pair in pairs), target.encode_all(pair.target for pair in pairs)
    return [Example(*both) for both in zip(*sides, strict=True)]


class Examples:
    """The training examples; `epoch(n)` returns them all, in the order of the pairs."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        source: Vocabulary,
        target: Vocabulary,
        variety: Variety,
        seed: int,
        anchors: Sequence[Sequence[Anchor]] = (),
        terms: Sequence[Sequence[LinkedTerm]] = (),
        plain: list[Example] | None = None,
    ) -> None:
        """`anchors`: where placeholders can stand, and `terms`: those that can be shown, for each of the first pairs;
        pairs beyond get none. `plain`: the `plain_examples` of the pairs, if they are known."""
        self._variety, self._seed = variety, seed
        self.plain = plain_examples(pairs, source, target) if plain is None else plain
        self._pairs, self._anchors, self._terms = pairs, anchors, terms
        self._source, self._target = source, target
        self._segmentations = tuple(
            Segmentations(vocabulary, variety.segmentation, seed + side)
            for side, vocabulary in enumerate((source, target))
        )
        self._chunk_ids: dict[tuple[int, Form], tuple[IntArray, IntArray]] = {}

    def __len__(self) -> int:
        return len(self.plain)

    def epoch(self, number: int, canonical: bool = False) -> list[Example]:
        """Return all examples, each in the form drawn for it in this epoch; `canonical`: in canonical segmentation."""
        variety = replace(self._variety, segmentation=0.0) if canonical else self._variety
        if variety == Variety():
            return self.plain
        rng = np.random.default_rng([self._seed, number])
        fractions = variety.lower_case, variety.no_stop, variety.no_punctuation
        drawn = [(rng.random(len(self)) < fraction).tolist() for fraction in fractions]
        placeholders = self._variants(rng, variety.placeholders, len(self._anchors))
        terms = self._variants(rng, variety.terms, len(self._terms)) * (placeholders == 0)
        forms = list(enumerate(map(Form, *drawn, placeholders.tolist(), terms.tolist())))
        if not variety.segmentation:
            return [self._encode(index, form) if any(form) else self.plain[index] for index, form in forms]
        return self._segment([self._chunks(index, form) for index, form in forms], rng)

    def _variants(self, rng: np.random.Generator, fraction: float, count: int) -> IntArray:
        """Return the number of the variant of each pair, mostly 0: none; only the first `count` pairs have variants."""
        if not fraction:
            return np.zeros(len(self), np.int64)
        drawn = (rng.random(len(self)) < fraction) * rng.integers(1, VARIANTS + 1, size=len(self))
        drawn[count:] = 0
        return np.asarray(drawn, np.int64)

    def _text(self, index: int, form: Form) -> tuple[str, str]:
        """Return source and target in the given form."""
        pair = self._pairs[index]
        if form.placeholders:
            rng = random.Random(f"{self._seed} {index} {form.placeholders}")
            pair = Pair(*with_placeholders(pair.source, pair.target, self._anchors[index], rng), pair.line)
        if not form.terms:
            return varied_text(pair, form)
        rng = random.Random(f"{self._seed} {index} {form.terms} terms")
        marked, annotations = with_marks(pair.source, self._terms[index], rng)
        source, target = varied_text(Pair(marked, pair.target, pair.line), form)
        return with_annotations(source, annotations), target

    def _encode(self, index: int, form: Form) -> Example:
        """Return an example in the given form, segmented by the vocabularies."""
        source, target = self._text(index, form)
        return Example(self._source.encode(source), self._target.encode(target))

    def _chunks(self, index: int, form: Form) -> tuple[IntArray, IntArray]:
        """Return the chunk ids of both sides of an example in the given form."""
        ids = self._chunk_ids.get((index, form))
        if ids is None:
            source, target = self._text(index, form)
            first, second = self._segmentations
            ids = first.chunk_ids(self._source.chunks(source)), second.chunk_ids(self._target.chunks(target))
            self._chunk_ids[index, form] = ids
        return ids

    def _segment(self, chunk_ids: list[tuple[IntArray, IntArray]], rng: np.random.Generator) -> list[Example]:
        """Return the examples with a segmentation drawn for each chunk."""
        sides = []
        for segment, rows in zip(self._segmentations, zip(*chunk_ids, strict=True), strict=True):
            chunks = np.concatenate(rows)
            tokens, counts = segment.tokens(chunks, rng.integers(segment.count, size=len(chunks)))
            sides.append(_split(tokens.tolist(), counts, [len(row) for row in rows]))
        return [Example(*both) for both in zip(*sides, strict=True)]


def varied_text(pair: Pair, form: Form) -> tuple[str, str]:
    """Return the source and the target of a pair in the given form."""
    source, target = pair.source, pair.target
    if form.no_stop:
        source, target = without_stop(source, target) or (source, target)
    if form.no_punctuation:
        source, target = without_punctuation(source, target) or (source, target)
    return tidy(source.lower()) if form.lower else source, target


def _split(tokens: list[int], counts: IntArray, chunks: Sequence[int]) -> list[list[int]]:
    """Return the tokens of each row, from its number of `chunks` and the number of tokens (`counts`) of each chunk."""
    ends = np.concatenate([[0], np.cumsum(counts)])[np.cumsum([0, *chunks])].tolist()
    return [tokens[first:last] for first, last in pairwise(ends)]
