"""What a recipe leaves open, from the size of the data."""

from __future__ import annotations

import math

LEARNING_RATE = 0.003
FEW, MANY = 5_000, 20_000
"""pairs"""


def better(pairs: int, on_a_gpu: bool) -> str:
    """Which of rnn and transformer measured better for so much data (docs/results.md): in minutes on a CPU, and in the
    time that they take on a GPU."""
    return "transformer" if on_a_gpu and pairs >= MANY else "rnn"


def vocabulary_size(pairs: int, joint: bool) -> int:
    """Small data, short pieces: each must be met often enough to be learned."""
    each = (
        1000
        if pairs < 4000
        else 2000
        if pairs < 15000
        else 4000
        if pairs < 60000
        else 8000
        if pairs < 500000
        else 16000
    )
    return 2 * each if joint else each


def batch_sentences(pairs: int, kind: str) -> int:
    """From 8 of very little data to 180, and 360 of much. A Transformer learns more from an update the more sentences
    it sees in it."""
    if kind == "transformer":
        return max(24, min(360, pairs // 55)) if pairs < 200000 else 720
    return max(8, min(180, pairs // 50)) if pairs < 200000 else 360


def learning_rate(sentences: int) -> float:
    """Of a Transformer, as the root of how many sentences a batch has."""
    return round(LEARNING_RATE * math.sqrt(min(1.0, sentences / 360)), 5)


def tokens(sentences: int, words: float) -> int:
    """So many sentences, at two tokens a word."""
    return max(64, min(16384, round(2 * words * sentences / 64) * 64))


def epochs(pairs: int) -> int:
    """Less data is read more often: about as many pairs in all, within bounds."""
    return max(5, min(100, round(1_100_000 / pairs)))
