"""Do other values point where the weights do?

Spearman's rank correlation of a target word's weights with the other values over the source words, averaged over the
target words: near 1 where they do, near 0 where they have nothing to do with each other.
"""

from __future__ import annotations

import numpy as np

from regard.look.trace import Evidence, Matrix, Trace


def evidence(name: str, values: Matrix, trace: Trace) -> Evidence:
    """values [target words, source words]"""
    return Evidence(name, values, agreement(trace.by_words()[2], values, trace))


def agreement(weights: Matrix, values: Matrix, trace: Trace) -> float:
    """The mean rank correlation over target words; end tokens on both sides are left out."""
    rows = [row for row, word in enumerate(trace.target.words) if word.text]
    columns = [column for column, word in enumerate(trace.source.words) if word.text]
    found = [spearman(weights[row, columns], values[row, columns]) for row in rows]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else 0.0


def spearman(one: np.ndarray, other: np.ndarray) -> float | None:
    """The correlation of ranks, ties sharing theirs; None where one of them is the same everywhere."""
    ranks = np.stack([_ranks(one), _ranks(other)])
    ranks -= ranks.mean(1, keepdims=True)
    spread = np.sqrt((ranks**2).sum(1))
    return None if (spread == 0).any() or ranks.shape[1] < 2 else float(ranks[0] @ ranks[1] / spread.prod())


def _ranks(values: np.ndarray) -> np.ndarray:
    below = (values[None] < values[:, None]).sum(1)
    equal = (values[None] == values[:, None]).sum(1)
    return np.asarray(below + (equal - 1) / 2, np.float64)
