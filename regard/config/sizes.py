"""Default values of a recipe, chosen by the size of the data."""

from __future__ import annotations

from bisect import bisect_right

LEARNING_RATE, FULL_BATCH = 0.003, 360
"""the learning rate, and the sentences per batch up to which it may depend on the batch size"""
SMALL_CORPUS, LARGE_CORPUS = 5_000, 20_000  # training pairs


def best_model_kind(pairs: int, on_gpu: bool, limited: bool) -> str:
    """Return which of rnn and transformer scored higher with so many pairs (docs/results.md): after the same minutes on
    a CPU, or after a whole training. `limited`: whether the run has a time limit."""
    if pairs < SMALL_CORPUS:
        return "rnn" if limited else "transformer"
    return "transformer" if on_gpu and pairs >= LARGE_CORPUS else "rnn"


def consistency(pairs: int) -> float:
    """Return α of consistency training, for a run that has it. With more pairs, α = 5 made a Transformer learn several
    times more slowly (docs/best.md)."""
    return 5.0 if pairs < SMALL_CORPUS else 1.0


def default_consistency(kind: str, pairs: int, on_gpu: bool) -> float:
    """Return α of consistency training, or 0 for none: where it scored higher (docs/best.md), and not on a CPU, because
    it doubles the time of an update."""
    return consistency(pairs) if on_gpu and kind == "transformer" and pairs < SMALL_CORPUS else 0.0


def vocabulary_size(pairs: int, joint: bool) -> int:
    """Return the number of subwords to learn. Little data gets short subwords, so that each occurs often enough to
    be learned; a joint vocabulary is twice as large."""
    size = 1000 << bisect_right((4_000, 15_000, 60_000, 500_000), pairs)
    return 2 * size if joint else size


def tokens(sentences: int, words: float) -> int:
    """Return the tokens per batch for so many sentences of so many words each, at two tokens a word."""
    return max(64, min(16384, round(2 * words * sentences / 64) * 64))
