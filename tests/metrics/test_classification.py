"""Scores of labels, beside scikit-learn's."""

import math

import numpy as np
import pytest

from regard.metrics.classification import score_labels

LABELS = ["a", "b", "c", "d"]


@pytest.mark.parametrize("seed", range(4))
def test_beside_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed here")
    drawn = np.random.default_rng(seed)
    probabilities = drawn.dirichlet([0.5] * 4, size=60)
    probabilities[:, 3] = 0  # a label that is never said
    probabilities /= probabilities.sum(1, keepdims=True)
    gold = drawn.integers(3 + seed % 2, size=60)
    result = score_labels(probabilities.tolist(), LABELS, [LABELS[each] for each in gold])
    message = probabilities.argmax(1)
    assert result.accuracy == pytest.approx(100 * metrics.accuracy_score(gold, message))
    assert result.macro_f1 == pytest.approx(100 * metrics.f1_score(gold, message, average="macro"))
    assert result.confusion == metrics.confusion_matrix(gold, message, labels=range(4)).tolist()
    clipped = np.maximum(probabilities, 1e-12)
    assert result.log_loss == pytest.approx(-np.log(clipped[np.arange(60), gold]).mean())
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        gold, message, labels=range(4), zero_division=0
    )
    for row, expected in zip(result.by_label, zip(LABELS, precision, recall, f1, support, strict=True), strict=True):
        assert row[0] == expected[0] and row[4] == expected[4]
        assert row[1:4] == pytest.approx([100 * each for each in expected[1:4]])


def test_a_label_the_model_does_not_know_is_missed() -> None:
    result = score_labels([[0.9, 0.1], [0.2, 0.8]], ["a", "b"], ["a", "new"])
    assert result.accuracy == 50 and result.labels == ["a", "b", "new"]
    assert result.confusion == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert "new" in str(result)


def test_calibration_error_by_hand() -> None:
    # Two bins: 0.6 twice, right once (gap 0.1 each), and 0.95 twice, right both times (gap 0.05 each).
    result = score_labels([[0.6, 0.4], [0.6, 0.4], [0.95, 0.05], [0.95, 0.05]], ["a", "b"], ["a", "b", "a", "a"])
    assert result.calibration_error == pytest.approx(100 * (2 * 0.1 + 2 * 0.05) / 4)
    assert result.standard_error == pytest.approx(100 * math.sqrt(0.75 * 0.25 / 4))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="1 answers came for 2 texts"):
        score_labels([[1.0]], ["a"], ["a", "a"])
    with pytest.raises(ValueError, match="no text came"):
        score_labels([], ["a"], [])
