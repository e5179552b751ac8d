"""Scores of a classifier: accuracy, macro-F1, the confusion matrix, log loss and calibration error.

precision_c = right_c / predicted_c,   recall_c = right_c / gold_c,   F1_c = 2 · right_c / (predicted_c + gold_c)
macro-F1 = mean of F1_c over the labels that are predicted or expected
log loss = − mean log p(gold)
calibration error = Σ_b n_b/N · |accuracy in b − mean confidence in b|   over ten bins b of confidence (Guo et al. 2017)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

BINS = 10
MIN_PROBABILITY = 1e-12  # the lower bound of probabilities whose logarithm is taken


@dataclass(frozen=True)
class LabelScores:
    """The scores of a classifier, in percent except for the log loss."""

    accuracy: float
    standard_error: float  # the standard error of the accuracy, from the number of texts
    macro_f1: float
    log_loss: float
    calibration_error: float
    texts: int
    labels: list[str]
    confusion: list[list[int]]  # [expected][predicted], in the order of `labels`

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as a dictionary for JSON."""
        return asdict(self)

    @property
    def by_label(self) -> list[tuple[str, float, float, float, int]]:
        """(label, precision, recall, F1, number of texts) for each label, in percent."""
        table = np.array(self.confusion)
        right, predicted, gold = table.diagonal(), table.sum(0), table.sum(1)
        precision_and_recall = [100 * right / np.maximum(1, total) for total in (predicted, gold)]
        f1 = 100 * 2 * right / np.maximum(1, predicted + gold)
        columns = (self.labels, *(values.tolist() for values in precision_and_recall), f1.tolist(), gold.tolist())
        return list(zip(*columns, strict=True))

    def lines(self) -> list[str]:
        """Return the scores as lines for a terminal."""
        return [
            f"accuracy  {self.accuracy:6.2f}   ± {self.standard_error:.2f}, percent of {self.texts:,} texts",
            f"macro-F1  {self.macro_f1:6.2f}",
            f"log loss  {self.log_loss:6.3f}   calibration error {self.calibration_error:.1f} %",
        ]

    def tables(self) -> list[str]:
        """Return the scores of each label and the confusion matrix as lines for a terminal."""
        width = max(5, *map(len, self.labels))
        lines = ["", f"{'label':{width}}  precision  recall      F1   texts"]
        lines += [
            f"{label:{width}}  {precision:9.1f}  {recall:6.1f}  {f1:6.1f}  {count:6,}"
            for label, precision, recall, f1, count in self.by_label
        ]
        cells = [[f"{count:,}" for count in row] for row in self.confusion]
        widths = [max(len(label), *(len(row[column]) for row in cells)) for column, label in enumerate(self.labels)]
        lines += ["", "confusion matrix: a row is an expected label, a column a predicted one", ""]
        for label, row in zip(["", *self.labels], [self.labels, *cells], strict=True):
            padded = (f"{cell:>{size}}" for cell, size in zip(row, widths, strict=True))
            lines.append(f"{label:{width}}  {'  '.join(padded)}")
        return lines

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.tables()])


def score_labels(
    probabilities: Sequence[Sequence[float]], labels: Sequence[str], expected: Sequence[str]
) -> LabelScores:
    """Score probabilities [texts][labels] against the expected labels; one that is not in `labels` is never right."""
    if len(probabilities) != len(expected):
        raise ValueError(f"{len(probabilities)} answers came for {len(expected)} texts; expected one each")
    if not expected:
        raise ValueError("no text came; expected at least one to score")
    unknown = sorted(set(expected) - set(labels))
    all_labels = [*labels, *unknown]
    ids = {label: number for number, label in enumerate(all_labels)}
    table = np.zeros((len(expected), len(all_labels)))
    table[:, : len(labels)] = np.asarray(probabilities, float)
    gold, predicted = np.array([ids[label] for label in expected]), table.argmax(1)
    confusion = np.zeros((len(all_labels), len(all_labels)), np.int64)
    np.add.at(confusion, (gold, predicted), 1)
    right, total = gold == predicted, confusion.sum(0) + confusion.sum(1)
    occurs = total > 0
    accuracy = float(right.mean())
    return LabelScores(
        accuracy=100 * accuracy,
        standard_error=100 * math.sqrt(accuracy * (1 - accuracy) / len(gold)),
        macro_f1=float(100 * (2 * confusion.diagonal()[occurs] / total[occurs]).mean()),
        log_loss=float(-np.log(np.maximum(table[np.arange(len(gold)), gold], MIN_PROBABILITY)).mean()),
        calibration_error=_calibration_error(table.max(1), right),
        texts=len(gold),
        labels=all_labels,
        confusion=confusion.tolist(),
    )


def _calibration_error(confidence: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> float:
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [abs(right[bins == each].sum() - confidence[bins == each].sum()) for each in np.unique(bins)]
    return float(100 * sum(gaps) / len(right))
