"""How far links are from those that people gave (Och & Ney 2003).

With the links A, the sure gold links S and the possible ones P, in which the sure ones are:

    precision = |A ∩ P| / |A|,   recall = |A ∩ S| / |S|,   AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

over all sentences together; 0 / 0 is perfect. The interval is where AER lies in 95 % of corpora drawn from these
sentences with replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.alignment.links import Gold, Link

DRAWS = 2000


@dataclass(frozen=True)
class ErrorRate:
    aer: float
    interval: tuple[float, float]
    """of the AER, 95 %"""
    precision: float
    recall: float
    sentences: int
    links: int
    """that were judged"""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        low, high = self.interval
        return "\n".join(
            (
                f"AER        {self.aer:.4f}   95 % of resampled corpora: {low:.4f} … {high:.4f}",
                f"precision  {self.precision:.4f}   of {self.links:,} links in {self.sentences:,} sentences",
                f"recall     {self.recall:.4f}",
            )
        )


def error_rate(links: Sequence[Iterable[Link]], gold: Sequence[Gold], seed: int = 1) -> ErrorRate:
    """Of the links of all sentences."""
    if len(links) != len(gold):
        raise ValueError(f"links: expected those of {len(gold):,} sentences, as many as gold has, got {len(links):,}")
    if not gold:
        raise ValueError("gold: expected at least one sentence, got none")
    counts = np.array([_counts(set(found), each) for found, each in zip(links, gold, strict=True)], np.int64)
    sure, possible, judged, wanted = counts.sum(0).tolist()
    draw = np.random.default_rng(seed)
    drawn = np.array([counts[draw.integers(len(counts), size=len(counts))].sum(0) for _ in range(DRAWS)])
    low, high = np.percentile([_aer(*row) for row in drawn.tolist()], (2.5, 97.5)).tolist()
    precision, recall = _share(possible, judged), _share(sure, wanted)
    return ErrorRate(_aer(sure, possible, judged, wanted), (low, high), precision, recall, len(gold), judged)


def _counts(links: set[Link], gold: Gold) -> tuple[int, int, int, int]:
    return len(links & gold.sure), len(links & gold.possible), len(links), len(gold.sure)


def _aer(sure: int, possible: int, judged: int, wanted: int) -> float:
    return 1 - _share(sure + possible, judged + wanted)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
