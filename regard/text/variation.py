"""The same text in other forms, so that a model learns from little data and bears what users type.

- BPE-dropout (Provilkov et al. 2020): a merge is left out with some probability, so that a word is met in several
  segmentations. A word has a few of them, each fixed by (seed, word, number): nothing has to be kept to repeat a run.
- A source in lower case, and a pair without its final full stops, are met now and then.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from regard.text.vocabulary import BYTES, Vocabulary

STOPS = ".।。"


class Segmentations:
    """chunk, number → tokens; number 0 is the vocabulary's own segmentation."""

    def __init__(self, vocabulary: Vocabulary, dropout: float, seed: int, count: int = 8) -> None:
        self.count = 1 if dropout == 0 or vocabulary.words else count
        self._vocabulary, self._dropout, self._seed = vocabulary, dropout, seed
        self._ranks = {pair: rank for rank, pair in enumerate(vocabulary.merges)}
        self._tokens = vocabulary.tokens
        self._known: dict[tuple[str, int], list[int]] = {}

    def __call__(self, chunk: str, number: int) -> list[int]:
        """number < count"""
        found = self._known.get((chunk, number))
        if found is None and self._vocabulary.words:
            found = self._known[chunk, number] = self._vocabulary.encode(chunk)
        if found is None:
            drawn = random.Random(f"{self._seed} {number} {chunk}")
            found = self._numbers(self._segment(chunk, drawn, self._dropout if number else 0.0))
            self._known[chunk, number] = found
        return found

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


def without_stop(source: str, target: str) -> tuple[str, str] | None:
    """The pair without the full stop at the end of both sides; None where one has none, or would have nothing left."""
    if source[-1:] in STOPS and target[-1:] in STOPS and len(source) > 1 and len(target) > 1:
        return source[:-1].rstrip(), target[:-1].rstrip()
    return None
