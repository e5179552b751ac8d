"""Pairs as a model trains on them: token numbers, in every epoch a new form, a pure function of (seed, epoch)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from regard.text.normal import tidy
from regard.text.pairs import Pair
from regard.text.variation import Numbers, Segmentations, without_stop
from regard.text.vocabulary import Vocabulary


class Example(NamedTuple):
    """Token numbers, without start and end."""

    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class Variety:
    """How often an example is met in another form."""

    segmentation: float = 0.0
    """the share of merges left out (BPE-dropout)"""
    lower_case: float = 0.0
    """the share of sources in lower case"""
    no_stop: float = 0.0
    """the share of pairs without their final full stops"""


class Examples:
    """The training pairs; `epoch(n)` gives them all, in the order of the pairs."""

    def __init__(
        self, pairs: Sequence[Pair], source: Vocabulary, target: Vocabulary, variety: Variety, seed: int
    ) -> None:
        self._variety, self._seed = variety, seed
        self._plain = [
            Example(*both)
            for both in zip(
                source.encode_all(pair.source for pair in pairs),
                target.encode_all(pair.target for pair in pairs),
                strict=True,
            )
        ]
        self._pairs = pairs
        self._source, self._target = source, target
        self._segmentations = tuple(
            Segmentations(vocabulary, variety.segmentation, seed + side)
            for side, vocabulary in enumerate((source, target))
        )
        self._forms: dict[tuple[int, bool, bool], tuple[Numbers, Numbers]] = {}

    def __len__(self) -> int:
        return len(self._plain)

    @property
    def plain(self) -> list[Example]:
        """As they stand in the data."""
        return self._plain

    def epoch(self, number: int) -> list[Example]:
        """All examples, each in the form drawn for it."""
        variety = self._variety
        if variety == Variety():
            return self._plain
        drawn = np.random.default_rng([self._seed, number])
        lower = drawn.random(len(self)) < variety.lower_case
        bare = drawn.random(len(self)) < variety.no_stop
        if not variety.segmentation:
            return [
                self._whole(index, *form) if any(form) else self._plain[index]
                for index, form in enumerate(zip(lower.tolist(), bare.tolist(), strict=True))
            ]
        forms = [self._form(index, *form) for index, form in enumerate(zip(lower.tolist(), bare.tolist(), strict=True))]
        return self._cut(forms, drawn)

    def _whole(self, index: int, lower: bool, bare: bool) -> Example:
        source, target = self._text(index, lower, bare)
        return Example(self._source.encode(source), self._target.encode(target))

    def _form(self, index: int, lower: bool, bare: bool) -> tuple[Numbers, Numbers]:
        """The chunks of both sides, by their numbers."""
        found = self._forms.get((index, lower, bare))
        if found is None:
            source, target = self._text(index, lower, bare)
            first, second = self._segmentations
            found = first.known(self._source.chunks(source)), second.known(self._target.chunks(target))
            self._forms[index, lower, bare] = found
        return found

    def _cut(self, forms: list[tuple[Numbers, Numbers]], drawn: np.random.Generator) -> list[Example]:
        """Each chunk in one of its segmentations."""
        sides = []
        for segment, rows in zip(self._segmentations, zip(*forms, strict=True), strict=True):
            chunks = np.concatenate(rows)
            tokens, counts = segment.tokens(chunks, drawn.integers(segment.count, size=len(chunks)))
            sides.append(_split(tokens.tolist(), counts, [len(row) for row in rows]))
        return [Example(*both) for both in zip(*sides, strict=True)]

    def _text(self, index: int, lower: bool, bare: bool) -> tuple[str, str]:
        pair = self._pairs[index]
        source, target = pair.source, pair.target
        if bare:
            source, target = without_stop(source, target) or (source, target)
        return tidy(source.lower()) if lower else source, target


def _split(tokens: list[int], counts: Numbers, chunks: Sequence[int]) -> list[list[int]]:
    """The tokens of each row, which has so many `chunks` of so many tokens (`counts`)."""
    ends = np.concatenate([[0], np.cumsum(counts)])[np.cumsum([0, *chunks])].tolist()
    return [tokens[first:last] for first, last in pairwise(ends)]
