"""Calibration error by hand, and what abstaining gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from regard.metrics.confidence import (
    ANSWERED,
    RatedSentence,
    abstention_curve,
    calibration_error,
    confidence_report,
)
from regard.metrics.translation import score


def test_the_error_of_ten_bins_of_equal_mass() -> None:
    draw = np.random.default_rng(0)
    confidence, right = draw.random(1000), (draw.random(1000) < 0.4).astype(float)
    ranked = sorted(zip(confidence.tolist(), right.tolist(), strict=True))
    bins = [ranked[start : start + 100] for start in range(0, 1000, 100)]
    gaps = [abs(sum(p for p, _ in each) - sum(y for _, y in each)) / 100 for each in bins]
    assert calibration_error(confidence, right) == pytest.approx(sum(gaps) / 10)


def test_true_probabilities_have_little_error_and_doubled_log_odds_much() -> None:
    draw = np.random.default_rng(1)
    confidence = draw.random(20_000)
    right = (draw.random(20_000) < confidence).astype(float)
    odds = (confidence / (1 - confidence)) ** 3
    assert calibration_error(confidence, right) < 0.02
    assert calibration_error(odds / (1 + odds), right) > 0.08


@pytest.mark.parametrize("count", [1, 3, 10, 11])
def test_few_values(count: int) -> None:
    assert calibration_error(np.full(count, 0.25), np.ones(count)) == pytest.approx(0.75)


def test_values_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="as many confidence values as outcomes"):
        calibration_error(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="at least one translation"):
        confidence_report([])


def sentences() -> list[RatedSentence]:
    """Ten translations, the later the worse; the confidence knows, the log-probability says the contrary."""
    right = ["the", "old", "man", "reads", "a", "book", "in", "the", "garden", "today"]
    result = []
    for wrong in range(10):
        words = [*right[: 10 - wrong], *["xyz"] * wrong]
        marks = [word != "xyz" for word in words]
        values = [0.9 if mark else 0.1 for mark in marks]
        result.append(RatedSentence(" ".join(words), [" ".join(right)], sum(values) / 10, values, marks, float(wrong)))
    return result


def test_a_report() -> None:
    report = confidence_report(sentences())
    assert (report.sources, report.words) == (10, 100)
    assert report.words_right == pytest.approx(0.55) and report.mean_confidence == pytest.approx(0.54)
    assert report.word_error == pytest.approx(0.09)  # one bin has both kinds
    assert report.correlation == pytest.approx(1.0) and report.baseline_correlation == pytest.approx(-1.0)
    assert "with sentence chrF++ 1.000; of the mean log-probability -1.000" in "\n".join(report.lines())
    assert len(report.as_dict()["curve"]) == len(ANSWERED)


def test_the_curve_has_the_scores_of_the_most_confident() -> None:
    rated = sentences()
    curve = abstention_curve(rated[::-1])
    assert [point.answered for point in curve] == list(ANSWERED)
    for point in curve:
        left = rated[: round(10 * point.answered)]
        expected = score([each.text for each in left], [each.references for each in left])
        assert (point.bleu, point.chrf, point.exact) == (expected.bleu, expected.chrf, expected.exact)
        assert point.min_confidence == left[-1].confidence
    assert curve[-1].chrf > curve[0].chrf + 10 and curve[-1].exact == 20.0


def test_a_translation_without_words_is_right_if_its_reference_is_empty() -> None:
    empty = RatedSentence("", ["something"], 0.0, [], [], -1.0)
    report = confidence_report([empty])
    assert (report.words, report.words_right, report.sentence_error, report.correlation) == (0, 0.0, 0.0, None)
    assert confidence_report([replace(empty, confidence=0.75)]).sentence_error == pytest.approx(0.75)
    assert confidence_report([replace(empty, references=[""], confidence=1.0)]).sentence_error == 0
