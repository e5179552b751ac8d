"""Default values of a recipe, chosen by the size of the data."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

LEARNING_RATE, FULL_BATCH = 0.003, 360
"""the learning rate, and the sentences per batch up to which it may depend on the batch size"""
SMALL_CORPUS, LARGE_CORPUS = 5_000, 100_000  # training pairs
SHORT_SENTENCES = 6.0  # words
CONSISTENCY_SECONDS = 300.0  # the time limit from which on consistency training is worth its time on a GPU


class Budget(NamedTuple):
    """What a run may use: its device, and its time limit if it has one."""

    on_gpu: bool
    seconds: float | None


def best_model_kind(pairs: int, words: float, budget: Budget) -> str:
    """Return rnn or transformer, whichever scored higher (docs/results.md): on a CPU after the same minutes, or with
    little data after a whole training; on a GPU in runs of some minutes. `words`: mean words of a pair's longer side.

    That short sentences are for the RNN was seen on one data set; more than 30,353 pairs were not compared on a GPU."""
    if budget.on_gpu:
        return "rnn" if words < SHORT_SENTENCES and SMALL_CORPUS <= pairs < LARGE_CORPUS else "transformer"
    return "transformer" if pairs < SMALL_CORPUS and budget.seconds is None else "rnn"


def consistency(pairs: int) -> float:
    """Return α of consistency training, for a run that has it. With more pairs, α = 5 made a Transformer learn several
    times more slowly (docs/best.md)."""
    return 5.0 if pairs < SMALL_CORPUS else 1.0


def default_consistency(kind: str, pairs: int, budget: Budget) -> float:
    """Return α of consistency training, or 0 for none. It doubles the time of an update, so it is for runs on a GPU
    that are not short. It was measured with 2,493 to 30,353 pairs (docs/best.md)."""
    has_time = budget.on_gpu and (budget.seconds is None or budget.seconds >= CONSISTENCY_SECONDS)
    suits_kind = kind == "transformer" or pairs >= SMALL_CORPUS
    return consistency(pairs) if has_time and suits_kind and pairs < LARGE_CORPUS else 0.0


def vocabulary_size(pairs: int, joint: bool) -> int:
    """Return the number of subwords to learn. Little data gets short subwords, so that each occurs often enough to
    be learned; a joint vocabulary is twice as large."""
    size = 1000 << bisect_right((4_000, 15_000, 60_000, 500_000), pairs)
    return 2 * size if joint else size


def tokens(sentences: int, words: float) -> int:
    """Return the tokens per batch for so many sentences of so many words each, at two tokens a word."""
    return max(64, min(16384, round(2 * words * sentences / 64) * 64))
