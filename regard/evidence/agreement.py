"""Agreement of attention weights with other measures of the importance of source words.

It is Spearman's rank correlation of a target word's weights with the other values over the source words, averaged over
the target words: near 1 where they agree, near 0 where they are unrelated.
"""

from __future__ import annotations

import numpy as np

from regard.look.trace import Evidence, Matrix, Trace
from regard.metrics.rank_correlation import spearman


def evidence(name: str, values: Matrix, trace: Trace) -> Evidence:
    """Return values [target words, source words] as evidence, with their agreement with the weights of the trace."""
    return Evidence(name, values, agreement(trace.by_words()[2], values, trace))


def agreement(weights: Matrix, values: Matrix, trace: Trace) -> float:
    """Return the mean rank correlation over target words; end tokens on both sides are left out."""
    rows = [row for row, word in enumerate(trace.target.words) if word.text]
    columns = [column for column, word in enumerate(trace.source.words) if word.text]
    correlations = [spearman(weights[row, columns], values[row, columns]) for row in rows]
    defined = [value for value in correlations if value is not None]
    return float(np.mean(defined)) if defined else 0.0
