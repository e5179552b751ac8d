"""Which of the models' languages a text is in.

A vocabulary of subwords was learned from texts of its language: it spells them with few pieces, and others with many.
With n tokens, a piece costs log n nats, and a byte of a letter that the vocabulary does not have costs more. The text
is compared with each vocabulary, and with a language that no model has, whose letters cost a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import regex

from regard.config.folder import read_vocabularies
from regard.serving.store import Fingerprint, ModelStore, ServedModel
from regard.text.normal import tidy
from regard.text.vocabulary import BYTES, SPECIAL, UNKNOWN, Vocabulary

MAX_CHARACTERS = 2_000  # of a text that are read
BYTE_COST = math.log(16)  # of a byte, in addition
LETTER_COST, IDEOGRAPH_COST = 4.0, 9.0  # of a letter in a language that no model has
TEMPERATURE = 8.0  # the costs of pieces are not independent: their sum is divided by this
_LETTER = regex.compile(r"\p{L}")
_IDEOGRAPH = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")


class DetectedLanguage(NamedTuple):
    """A language, and the probability that a text is in it."""

    language: str
    probability: float


class LanguageDetector:
    """Compares texts with the vocabularies of the models."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store
        self._vocabularies: dict[str, tuple[Fingerprint, tuple[Vocabulary, Vocabulary]]] = {}

    def detect(self, text: str) -> list[DetectedLanguage]:
        """Return the languages of the models, the most probable first; what is missing to 1 is any other language."""
        tidied = tidy(text)[:MAX_CHARACTERS]
        codes = self._store.languages
        if not _LETTER.search(tidied):
            return [DetectedLanguage(code, 0.0) for code in codes]
        costs: dict[str, float] = {}
        for model in self._store.translators:
            for code, vocabulary in zip(model.languages or (), self._of(model), strict=False):
                costs[code] = min(cost(tidied, vocabulary), costs.get(code, math.inf))
        ideographs = len(_IDEOGRAPH.findall(tidied))
        other = LETTER_COST * (len(tidied) - ideographs) + IDEOGRAPH_COST * ideographs
        probabilities = _softmax([-value / TEMPERATURE for value in (*costs.values(), other)])
        detected = [DetectedLanguage(*each) for each in zip(costs, probabilities, strict=False)]
        return sorted(detected, key=lambda each: -each.probability)

    def _of(self, model: ServedModel) -> tuple[Vocabulary, Vocabulary]:
        """Return the vocabularies of a model, read again if its files have changed."""
        files = model.fingerprint()
        known = self._vocabularies.get(model.name)
        if known is not None and known[0] == files:
            return known[1]
        both = read_vocabularies(model.folder)
        self._vocabularies[model.name] = files, (both.source, both.target)
        return both.source, both.target


def cost(tidied: str, vocabulary: Vocabulary) -> float:
    """Return how much it costs to spell a text."""
    per_piece, first = math.log(len(vocabulary)), len(SPECIAL) if vocabulary.words else len(SPECIAL) + len(BYTES)
    unknown = vocabulary.tokens[UNKNOWN] if vocabulary.words else -1
    total = 0.0
    for piece in vocabulary.pieces(tidied):
        total += per_piece
        if piece.token == unknown:
            total += (LETTER_COST + 1) * (piece.end - piece.start)
        elif piece.token < first:
            total += BYTE_COST
    return total


def _softmax(values: Sequence[float]) -> list[float]:
    highest = max(values)
    powers = [math.exp(value - highest) for value in values]
    return [power / sum(powers) for power in powers]
