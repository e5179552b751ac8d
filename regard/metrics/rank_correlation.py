"""Spearman's rank correlation."""

from __future__ import annotations

import numpy as np


def spearman(one: np.ndarray, other: np.ndarray) -> float | None:
    """Return the rank correlation, with mean ranks for ties; None if one of the arrays is constant."""
    ranks = np.stack([_ranks(one), _ranks(other)])
    ranks -= ranks.mean(1, keepdims=True)
    spread = np.sqrt((ranks**2).sum(1))
    return None if (spread == 0).any() or ranks.shape[1] < 2 else float(ranks[0] @ ranks[1] / spread.prod())


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of the values, from 0; ties get their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[places], np.float64)
