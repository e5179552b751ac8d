"""The same text in other forms, so that a model learns from little data and bears what users type.

- BPE-dropout (Provilkov et al. 2020): a merge is left out with some probability, so that a word is met in several
  segmentations. A word has a few of them, each fixed by (seed, word, number): nothing has to be kept to repeat a run.
- A source in lower case, and a pair without its final full stops, are met now and then.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.text.vocabulary import BYTES, Vocabulary

STOPS = ".।。"
Numbers = NDArray[np.int64]


class Segmentations:
    """chunk, number → tokens; number 0 is the vocabulary's own segmentation.

    An epoch asks for a million of them: chunks go by numbers, and what was cut before is taken from one long array.
    """

    def __init__(self, vocabulary: Vocabulary, dropout: float, seed: int, count: int = 8) -> None:
        self.count = 1 if dropout == 0 or vocabulary.words else count
        self._vocabulary, self._dropout, self._seed = vocabulary, dropout, seed
        self._ranks = {pair: rank for rank, pair in enumerate(vocabulary.merges)}
        self._tokens = vocabulary.tokens
        self._chunks: dict[str, int] = {}
        self._cut = Cut()

    def known(self, chunks: Iterable[str]) -> Numbers:
        """The numbers by which chunks go here."""
        return np.array([self._chunks.setdefault(chunk, len(self._chunks)) for chunk in chunks], np.int64)

    def tokens(self, chunks: Numbers, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Of each chunk the segmentation of that number < count → (all tokens one behind the other, how many each)."""
        wanted = chunks * self.count + numbers
        self._cut.make_room(len(self._chunks) * self.count)
        missing = self._cut.missing(wanted)
        if len(missing):
            names = list(self._chunks)
            self._cut.add(missing, [self(names[place // self.count], place % self.count) for place in missing.tolist()])
        return self._cut.take(wanted)

    def __call__(self, chunk: str, number: int) -> list[int]:
        """number < count"""
        if self._vocabulary.words:
            return self._vocabulary.encode(chunk)
        drawn = random.Random(f"{self._seed} {number} {chunk}")
        return self._numbers(self._segment(chunk, drawn, self._dropout if number else 0.0))

    def _segment(self, chunk: str, drawn: random.Random, dropout: float) -> list[str]:
        """Merge the pair of the lowest rank, again and again; each candidate is passed over with the given chance."""
        pieces = list(chunk)
        while len(pieces) > 1:
            ranked = [
                (rank, place)
                for place, pair in enumerate(pairwise(pieces))
                if (rank := self._ranks.get(pair)) is not None and (not dropout or drawn.random() >= dropout)
            ]
            if not ranked:
                break
            place = min(ranked)[1]
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        return pieces

    def _numbers(self, pieces: Sequence[str]) -> list[int]:
        numbers: list[int] = []
        for piece in pieces:
            if piece in self._tokens:
                numbers.append(self._tokens[piece])
            else:
                numbers += [self._tokens[BYTES[byte]] for byte in piece.encode()]
        return numbers


class Cut:
    """Rows of numbers of any length, one behind the other, found by where they begin."""

    def __init__(self) -> None:
        self._all = np.zeros(0, np.int64)
        self._begin = np.zeros(0, np.int64)
        self._count = np.full(0, -1, np.int64)
        """-1: not there yet"""

    def make_room(self, rows: int) -> None:
        """For so many rows in all."""
        new = rows - len(self._count)
        self._begin = np.concatenate([self._begin, np.zeros(new, np.int64)])
        self._count = np.concatenate([self._count, np.full(new, -1, np.int64)])

    def missing(self, places: Numbers) -> Numbers:
        """Which of the rows are not there, each once."""
        return np.unique(places[self._count[places] < 0])

    def add(self, places: Numbers, rows: Sequence[Sequence[int]]) -> None:
        counts = np.array([len(row) for row in rows], np.int64)
        self._begin[places] = len(self._all) + np.cumsum(counts) - counts
        self._count[places] = counts
        self._all = np.concatenate([self._all, np.array([number for row in rows for number in row], np.int64)])

    def take(self, places: Numbers) -> tuple[Numbers, Numbers]:
        """(the rows one behind the other, how long each is)"""
        counts = self._count[places]
        ends = np.cumsum(counts)
        shift = np.repeat(self._begin[places] - (ends - counts), counts)
        return self._all[shift + np.arange(len(shift))], counts


def without_stop(source: str, target: str) -> tuple[str, str] | None:
    """The pair without the full stop at the end of both sides; None where one has none, or would have nothing left."""
    if source[-1:] in STOPS and target[-1:] in STOPS and len(source) > 1 and len(target) > 1:
        return source[:-1].rstrip(), target[:-1].rstrip()
    return None
