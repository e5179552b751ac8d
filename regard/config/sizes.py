"""Default values of a recipe, chosen by the size of the data."""

from __future__ import annotations

import math
from bisect import bisect_right

LEARNING_RATE = 0.003
SMALL_CORPUS, LARGE_CORPUS = 5_000, 20_000
"""training pairs"""


def best_model_kind(pairs: int, on_gpu: bool) -> str:
    """Return which of rnn and transformer scored higher with so many pairs (docs/results.md): after the same minutes on
    a CPU, or after a whole training on a GPU."""
    return "transformer" if on_gpu and pairs >= LARGE_CORPUS else "rnn"


def vocabulary_size(pairs: int, joint: bool) -> int:
    """Return the number of tokens of a vocabulary. Little data gets short subwords, so that each occurs often enough to
    be learned; a joint vocabulary is twice as large."""
    size = 1000 << bisect_right((4_000, 15_000, 60_000, 500_000), pairs)
    return 2 * size if joint else size


def batch_sentences(pairs: int, kind: str) -> int:
    """Return the sentences per batch: from 8 for very little data to 180, and 360 for much. A Transformer gets larger
    batches, from which an update learns more."""
    if kind == "transformer":
        return max(24, min(360, pairs // 55)) if pairs < 200000 else 720
    return max(8, min(180, pairs // 50)) if pairs < 200000 else 360


def learning_rate(sentences: int) -> float:
    """Return the learning rate of a Transformer: it scales with the square root of the sentences per batch."""
    return round(LEARNING_RATE * math.sqrt(min(1.0, sentences / 360)), 5)


def tokens(sentences: int, words: float) -> int:
    """Return the tokens per batch for so many sentences of so many words each, at two tokens a word."""
    return max(64, min(16384, round(2 * words * sentences / 64) * 64))


def epochs(pairs: int) -> int:
    """Return the number of epochs: less data is read more often, so that a run sees about as many pairs in all."""
    return max(5, min(100, round(1_100_000 / pairs)))
