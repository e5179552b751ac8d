"""Which of the models' languages a text is in.

A vocabulary of subwords was learned from texts of its language: it spells them with few pieces, and others with many.
With n tokens, a piece costs log n nats, and a byte of a letter that the vocabulary does not have costs more. Where both
languages share a vocabulary, the bias of the model's output layer says which tokens it writes, and which it only reads.
The text is compared with each language, and with one that no model has, whose letters cost a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import regex
import torch
from torch.nn.functional import logsigmoid

from regard.config.folder import WEIGHTS, read_vocabularies
from regard.runtime.tensor_file import open_tensors
from regard.serving.errors import RequestError
from regard.serving.store import Fingerprint, ModelStore, ServedModel
from regard.text.normal import tidy
from regard.text.vocabulary import BYTES, SPECIAL, UNKNOWN, Vocabulary

BIAS = "output.bias"  # the name of the output layer's bias among the weights
MAX_CHARACTERS = 2_000  # of a text that are read
BYTE_COST = math.log(16)  # of a byte, in addition
LETTER_COST, IDEOGRAPH_COST = 4.0, 9.0  # of a letter in a language that no model has
BIAS_SCALE = 2.0  # how much a standard deviation of the output bias says about the side of a token
TEMPERATURE = 8.0  # the costs of pieces are not independent: their sum is divided by this
_LETTER = regex.compile(r"\p{L}")
_IDEOGRAPH = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")


class DetectedLanguage(NamedTuple):
    """A language, and the probability that a text is in it."""

    language: str
    probability: float


class SpellingCost:
    """How much it costs to spell texts with a vocabulary."""

    def __init__(self, vocabulary: Vocabulary, side: Sequence[float] = ()) -> None:
        """`side`: what each token costs in addition because it belongs to the other language."""
        self._vocabulary = vocabulary
        costs = [math.log(len(vocabulary)) + extra for extra in (side or [0.0] * len(vocabulary))]
        if not vocabulary.words:
            first = len(SPECIAL)
            costs[first : first + len(BYTES)] = [each + BYTE_COST for each in costs[first : first + len(BYTES)]]
        self._costs, self._unknown = costs, vocabulary.tokens[UNKNOWN] if vocabulary.words else -1

    def __call__(self, tidied: str) -> float:
        total = 0.0
        for piece in self._vocabulary.pieces(tidied):
            total += self._costs[piece.token]
            if piece.token == self._unknown:
                total += (LETTER_COST + 1) * (piece.end - piece.start)
        return total


def costs_of(folder: Path) -> tuple[SpellingCost, SpellingCost]:
    """Return the costs of the source language and of the target language of a model."""
    both = read_vocabularies(folder)
    if not both.joint:
        return SpellingCost(both.source), SpellingCost(both.target)
    with open_tensors(folder / WEIGHTS) as weights:
        known = BIAS in weights.entries and weights.entries[BIAS].shape == (len(both.target),)
        bias = weights.read(BIAS).float() if known else torch.zeros(len(both.target))
    scores = BIAS_SCALE * (bias - bias.mean()) / bias.std().clamp(min=1e-6)
    source, target = -math.log(2) - logsigmoid(-scores), -math.log(2) - logsigmoid(scores)
    return SpellingCost(both.source, source.tolist()), SpellingCost(both.target, target.tolist())


class LanguageDetector:
    """Compares texts with the vocabularies of the models."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store
        self._costs: dict[str, tuple[Fingerprint, tuple[SpellingCost, SpellingCost]]] = {}

    def detect(self, text: str) -> list[DetectedLanguage]:
        """Return the languages of the models, the most probable first; what is missing to 1 is any other language."""
        tidied = tidy(text)[:MAX_CHARACTERS]
        if not _LETTER.search(tidied):
            return [DetectedLanguage(code, 0.0) for code in self._store.languages]
        costs: dict[str, float] = {}
        for model in self._store.translators:
            for code, cost in zip(model.languages or (), self._of(model), strict=False):
                costs[code] = min(cost(tidied), costs.get(code, math.inf))
        ideographs = len(_IDEOGRAPH.findall(tidied))
        other = LETTER_COST * (len(tidied) - ideographs) + IDEOGRAPH_COST * ideographs
        probabilities = _softmax([-value / TEMPERATURE for value in (*costs.values(), other)])
        detected = [DetectedLanguage(*each) for each in zip(costs, probabilities, strict=False)]
        return sorted(detected, key=lambda each: -each.probability)

    def _of(self, model: ServedModel) -> tuple[SpellingCost, SpellingCost]:
        """Return the costs of a model's languages, read again if its files have changed."""
        files = model.fingerprint()
        known = self._costs.get(model.name)
        if known is None or known[0] != files:
            try:
                known = files, costs_of(model.folder)
            except (ValueError, OSError) as error:
                reason = str(error).replace(str(model.folder), model.name)
                raise RequestError(503, f"model: {model.name} cannot be read: {reason}") from None
            self._costs[model.name] = known
        return known[1]


def _softmax(values: Sequence[float]) -> list[float]:
    highest = max(values)
    powers = [math.exp(value - highest) for value in values]
    return [power / sum(powers) for power in powers]
