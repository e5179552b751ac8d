"""The alignment error rate: how far links are from gold links (Och & Ney 2003).

With the links A, the sure gold links S and the possible ones P, in which the sure ones are:

    precision = |A ∩ P| / |A|,   recall = |A ∩ S| / |S|,   AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

over all sentences together; 0 / 0 counts as perfect. The interval is a bootstrap interval: AER lies in it for 95 % of
the corpora drawn from these sentences with replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.alignment.links import Gold, Link

BOOTSTRAP_SAMPLES = 2000


@dataclass(frozen=True)
class ErrorRate:
    """The alignment error rate of a set of links, with its parts."""

    aer: float
    interval: tuple[float, float]  # the 95 % interval of the AER
    precision: float
    recall: float
    sentences: int
    links: int  # the number of links that were scored

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"AER        {self.aer:.4f}   95 % of resampled corpora: {low:.4f} … {high:.4f}\n"
            f"precision  {self.precision:.4f}   of {self.links:,} links in {self.sentences:,} sentences\n"
            f"recall     {self.recall:.4f}"
        )


def alignment_error(links: Iterable[Link], gold: Gold) -> float:
    """Return the alignment error rate of the links of one sentence."""
    scored = set(links)
    return _aer(len(scored & gold.sure), len(scored & gold.possible), len(scored), len(gold.sure))


def error_rate(links: Sequence[Iterable[Link]], gold: Sequence[Gold], seed: int = 1) -> ErrorRate:
    """Score the links of all sentences against the gold links."""
    if len(links) != len(gold):
        raise ValueError(f"links: expected those of {len(gold):,} sentences, as many as gold has, got {len(links):,}")
    if not gold:
        raise ValueError("gold: expected at least one sentence, got none")
    pairs = [(set(hypothesis), each) for hypothesis, each in zip(links, gold, strict=True)]
    counts = np.array([(len(a & g.sure), len(a & g.possible), len(a), len(g.sure)) for a, g in pairs], np.int64)
    sure, possible, scored, gold_sure = counts.sum(0).tolist()
    rng = np.random.default_rng(seed)
    resampled = np.array([counts[rng.integers(len(counts), size=len(counts))].sum(0) for _ in range(BOOTSTRAP_SAMPLES)])
    low, high = np.percentile([_aer(*row) for row in resampled.tolist()], (2.5, 97.5)).tolist()
    precision, recall = _ratio(possible, scored), _ratio(sure, gold_sure)
    return ErrorRate(_aer(sure, possible, scored, gold_sure), (low, high), precision, recall, len(gold), scored)


def _aer(sure: int, possible: int, scored: int, gold_sure: int) -> float:
    return 1 - _ratio(sure + possible, scored + gold_sure)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
