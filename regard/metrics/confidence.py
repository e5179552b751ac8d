"""How good confidence values are: their calibration, their rank correlation with quality, and what abstaining gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.metrics.rank_correlation import spearman
from regard.metrics.translation import chrf, score

Vector = np.ndarray[Any, np.dtype[np.float64]]

BINS = 10
ANSWERED = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)  # fractions of the sources that are answered, along the curve


def calibration_error(confidence: Vector, right: Vector, bins: int = BINS) -> float:
    """Return the expected calibration error over bins of equal mass, from 0 to 1.

    Σ_b n_b / N · |mean confidence in b − fraction right in b|, b being the b-th tenth by confidence
    """
    if len(confidence) != len(right) or not len(right):
        raise ValueError(
            f"expected as many confidence values as outcomes, and one, got {len(confidence)}, {len(right)}"
        )
    order = np.argsort(confidence, kind="stable")
    parts = [part for part in np.array_split(order, min(bins, len(order))) if len(part)]
    return float(sum(abs(confidence[part].sum() - right[part].sum()) for part in parts) / len(order))


@dataclass(frozen=True)
class CurvePoint:
    """The scores of the answers that remain if the least confident ones are left out."""

    answered: float  # fraction of the sources
    min_confidence: float  # the lowest confidence among them
    bleu: float
    chrf: float
    exact: float


@dataclass(frozen=True)
class ConfidenceReport:
    """How good the confidence of translations is on a test set. Calibration errors are from 0 to 1."""

    words: int
    sources: int
    words_right: float  # fraction
    mean_confidence: float  # of words
    word_error: float  # the calibration error of words
    sentence_error: float  # of sentences: of the mean of their words against the fraction of them that is right
    correlation: float | None  # Spearman's, of the sentences' confidence with their chrF++
    baseline_correlation: float | None  # the same of the mean log-probability of a token
    curve: list[CurvePoint]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the report as lines for a terminal."""
        right = f"{100 * self.words_right:.1f} % of {self.words:,} words are right"
        errors = f"words {100 * self.word_error:.1f} %, sentences {100 * self.sentence_error:.1f} %"
        both = [_correlation_text(each) for each in (self.correlation, self.baseline_correlation)]
        table = [
            f"{100 * each.answered:7.0f} %  {each.min_confidence:10.2f}  {each.bleu:6.2f}  {each.chrf:6.2f}  "
            f"{each.exact:6.2f}"
            for each in self.curve
        ]
        return [
            f"confidence           mean {100 * self.mean_confidence:.1f} %; {right}",
            f"calibration error    {errors}",
            f"rank correlation     with sentence chrF++ {both[0]}; of the mean log-probability {both[1]}",
            "",
            " answered  confidence    BLEU  chrF++   exact",
            *table,
        ]


def _correlation_text(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


@dataclass(frozen=True)
class RatedSentence:
    """A translation with its confidence, and what it is judged by."""

    text: str
    references: Sequence[str]
    confidence: float
    words: Sequence[float]  # the confidence of each word
    right: Sequence[bool]  # whether each word is right
    mean_log_probability: float  # of a token

    @property
    def fraction_right(self) -> float:
        """the fraction of right words; of a text without words 1 if it equals a reference, else 0"""
        return float(np.mean(self.right)) if len(self.right) else float(self.text in self.references)


def confidence_report(sentences: Sequence[RatedSentence]) -> ConfidenceReport:
    """Judge the confidence of translations, one of each source."""
    if not sentences:
        raise ValueError("expected at least one translation, got none")
    words = np.array([value for each in sentences for value in each.words], np.float64)
    right = np.array([value for each in sentences for value in each.right], np.float64)
    confidence = np.array([each.confidence for each in sentences], np.float64)
    fractions = np.array([each.fraction_right for each in sentences], np.float64)
    quality = np.array([chrf([each.text], [each.references]) for each in sentences], np.float64)
    baseline = np.array([each.mean_log_probability for each in sentences], np.float64)
    return ConfidenceReport(
        words=len(words),
        sources=len(sentences),
        words_right=float(right.mean()) if len(right) else 0.0,
        mean_confidence=float(words.mean()) if len(words) else 0.0,
        word_error=calibration_error(words, right) if len(words) else 0.0,
        sentence_error=calibration_error(confidence, fractions),
        correlation=spearman(confidence, quality),
        baseline_correlation=spearman(baseline, quality),
        curve=abstention_curve(sentences),
    )


def abstention_curve(sentences: Sequence[RatedSentence], fractions: Sequence[float] = ANSWERED) -> list[CurvePoint]:
    """Return the scores of the most confident fractions of the translations."""
    ranked = sorted(sentences, key=lambda each: -each.confidence)
    points = []
    for fraction in fractions:
        answered = ranked[: max(1, round(fraction * len(ranked)))]
        scores = score([each.text for each in answered], [each.references for each in answered])
        point = CurvePoint(fraction, answered[-1].confidence, scores.bleu, scores.chrf, scores.exact)
        points.append(point)
    return points
