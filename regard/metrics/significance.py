"""Paired bootstrap resampling: is a difference in chrF++ more than the luck of the test sentences? (Koehn 2004)

    d  = mean chrF++ of system A − that of system B, each the mean over its runs
    d* = the same on as many sentences, drawn with replacement: the same ones for all runs of both systems
    p  = (1 + #{|d*| − mean |d*| > |d|}) / (1 + samples)

For systems of one run this is the test of sacrebleu's `--paired-bs`, with the same random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.metrics.translation import reference_columns
from regard.text.normal import tidy

SAMPLES = 1000
SEED = 12345  # sacrebleu's
SIGNIFICANT = 0.05  # the p-value below which a difference counts as significant

Floats = np.ndarray[Any, np.dtype[np.float64]]


class BootstrapScores:
    """The chrF++ of runs on resampled corpora, and on each sentence alone.

    `references` has all references of each source. Every run is scored on the same resampled corpora.
    """

    def __init__(self, references: Sequence[Sequence[str]], samples: int = SAMPLES, seed: int = SEED) -> None:
        from sacrebleu.metrics.chrf import CHRF

        columns = reference_columns([[tidy(text) for text in known] for known in references])
        self._metric = CHRF(word_order=2, references=columns)
        sentences = len(references)
        self._drawn = np.random.default_rng(seed).choice(sentences, size=(samples, sentences), replace=True)

    def resampled(self, hypotheses: Sequence[str]) -> Floats:
        """Return the chrF++ of a run [1 + samples]: on the whole corpus, then on each resampled one."""
        statistics = self._statistics(hypotheses)
        totals = [statistics.sum(0), *(statistics[rows].sum(0) for rows in self._drawn)]
        return np.array([self._score(total) for total in totals])

    def by_sentence(self, hypotheses: Sequence[str]) -> Floats:
        """Return the chrF++ of each sentence."""
        return np.array([self._score(row) for row in self._statistics(hypotheses)])

    def _statistics(self, hypotheses: Sequence[str]) -> Floats:
        """Return the n-gram counts of each sentence against its closest reference, which can be summed."""
        counts = self._metric._extract_corpus_statistics([tidy(text) for text in hypotheses], None)
        return np.array(counts, np.float64)

    def _score(self, statistics: Floats) -> float:
        return float(self._metric._compute_score_from_stats(statistics.tolist()).score)


def p_value(runs: Sequence[Floats], others: Sequence[Floats]) -> float:
    """Return the p-value of the difference between two systems, each with the `resampled` scores of its runs."""
    differences = np.mean(runs, 0) - np.mean(others, 0)
    observed, resampled = abs(differences[0]), np.abs(differences[1:])
    if observed == 0:  # sacrebleu's count would call systems with the same output significantly different
        return 1.0
    larger = int((resampled - resampled.mean() > observed).sum())
    return (1 + larger) / (1 + len(resampled))
