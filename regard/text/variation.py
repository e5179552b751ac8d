"""Variation of the segmentation of training texts, so that a model learns more from little data.

BPE-dropout (Provilkov et al. 2020): a merge is left out with some probability, so that a word occurs in several
segmentations. A word has a few of them, each determined by (seed, word, number), so that runs are reproducible.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.text.vocabulary import BYTES, Vocabulary

IntArray = NDArray[np.int64]


class Segmentations:
    """Maps a chunk and a number below `count` to tokens; number 0 is the vocabulary's own segmentation.

    An epoch needs about a million segmentations: chunks have integer ids, and earlier results come from one long array.
    """

    def __init__(self, vocabulary: Vocabulary, dropout: float, seed: int, count: int = 8) -> None:
        self.count = 1 if dropout == 0 or vocabulary.words else count
        self._vocabulary, self._dropout, self._seed = vocabulary, dropout, seed
        self._ranks = {pair: rank for rank, pair in enumerate(vocabulary.merges)}
        self._tokens = vocabulary.tokens
        self._chunks: dict[str, int] = {}
        self._cache = RaggedArray()

    def chunk_ids(self, chunks: Iterable[str]) -> IntArray:
        """Return the ids of the chunks; new chunks get new ids."""
        return np.array([self._chunks.setdefault(chunk, len(self._chunks)) for chunk in chunks], np.int64)

    def tokens(self, chunks: IntArray, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """Return the segmentations with the given numbers of the chunks: (all tokens concatenated, how many each)."""
        wanted = chunks * self.count + numbers
        self._cache.make_room(len(self._chunks) * self.count)
        missing = self._cache.missing(wanted)
        if len(missing):
            names = list(self._chunks)
            self._cache.add(missing, [self(names[row // self.count], row % self.count) for row in missing.tolist()])
        return self._cache.take(wanted)

    def __call__(self, chunk: str, number: int) -> list[int]:
        """Return the tokens of a chunk in the segmentation of this number."""
        if self._vocabulary.words:
            return self._vocabulary.encode(chunk)
        rng = random.Random(f"{self._seed} {number} {chunk}")
        return self._token_ids(self._segment(chunk, rng, self._dropout if number else 0.0))

    def _segment(self, chunk: str, rng: random.Random, dropout: float) -> list[str]:
        """Repeatedly merge the pair of the lowest rank; each candidate is skipped with probability `dropout`."""
        pieces = list(chunk)
        while len(pieces) > 1:
            ranked = [
                (rank, index)
                for index, pair in enumerate(pairwise(pieces))
                if (rank := self._ranks.get(pair)) is not None and (not dropout or rng.random() >= dropout)
            ]
            if not ranked:
                break
            index = min(ranked)[1]
            pieces[index : index + 2] = [pieces[index] + pieces[index + 1]]
        return pieces

    def _token_ids(self, pieces: Sequence[str]) -> list[int]:
        """Return the token ids of the pieces; a piece that is not in the vocabulary becomes its bytes."""
        ids: list[int] = []
        for piece in pieces:
            names = [piece] if piece in self._tokens else [BYTES[byte] for byte in piece.encode()]
            ids += [self._tokens[name] for name in names]
        return ids


class RaggedArray:
    """Rows of integers of any length, concatenated in one array and located by their offsets."""

    def __init__(self) -> None:
        self._values = np.zeros(0, np.int64)
        self._begin = np.zeros(0, np.int64)
        self._count = np.full(0, -1, np.int64)  # the length of each row; -1: not there yet

    def make_room(self, rows: int) -> None:
        """Make room for this number of rows in total."""
        new = rows - len(self._count)
        self._begin = np.concatenate([self._begin, np.zeros(new, np.int64)])
        self._count = np.concatenate([self._count, np.full(new, -1, np.int64)])

    def missing(self, indices: IntArray) -> IntArray:
        """Return the distinct indices of the rows that are not there yet."""
        return np.unique(indices[self._count[indices] < 0])

    def add(self, indices: IntArray, rows: Sequence[Sequence[int]]) -> None:
        """Add the rows with these indices."""
        counts = np.array([len(row) for row in rows], np.int64)
        self._begin[indices] = len(self._values) + np.cumsum(counts) - counts
        self._count[indices] = counts
        self._values = np.concatenate([self._values, np.array([value for row in rows for value in row], np.int64)])

    def take(self, indices: IntArray) -> tuple[IntArray, IntArray]:
        """Return the rows with these indices, concatenated, and their lengths."""
        counts = self._count[indices]
        ends = np.cumsum(counts)
        shift = np.repeat(self._begin[indices] - (ends - counts), counts)
        return self._values[shift + np.arange(len(shift))], counts
