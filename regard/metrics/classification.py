"""How well labels are found: accuracy, macro-F1, what is taken for what, and whether probabilities mean what they say.

precision_c = right_c / said_c,   recall_c = right_c / gold_c,   F1_c = 2 · right_c / (said_c + gold_c)
macro-F1 = mean over the labels that are said or expected of F1_c
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
LEAST = 1e-12
"""of a probability whose logarithm is taken"""


@dataclass(frozen=True)
class LabelScores:
    """All in percent, but for the log loss."""

    accuracy: float
    standard_error: float
    """of the accuracy, by the number of texts"""
    macro_f1: float
    log_loss: float
    calibration_error: float
    texts: int
    labels: list[str]
    confusion: list[list[int]]
    """[expected][said], in the order of `labels`"""

    def as_dict(self) -> dict[str, Any]:
        """The scores as JSON takes them."""
        return asdict(self)

    @property
    def by_label(self) -> list[tuple[str, float, float, float, int]]:
        """(label, precision, recall, F1, texts), in percent."""
        table = np.array(self.confusion)
        right, said, gold = table.diagonal(), table.sum(0), table.sum(1)
        shares = [100 * right / np.maximum(1, whole) for whole in (said, gold)]
        f1 = 100 * 2 * right / np.maximum(1, said + gold)
        columns = (self.labels, *(share.tolist() for share in shares), f1.tolist(), gold.tolist())
        return list(zip(*columns, strict=True))

    def lines(self) -> list[str]:
        """The scores as a terminal shows them."""
        return [
            f"accuracy  {self.accuracy:6.2f}   ± {self.standard_error:.2f}, percent of {self.texts:,} texts",
            f"macro-F1  {self.macro_f1:6.2f}",
            f"log loss  {self.log_loss:6.3f}   calibration error {self.calibration_error:.1f} %",
        ]

    def tables(self) -> list[str]:
        """Label by label, and what is taken for what, as a terminal shows them."""
        width = max(5, *map(len, self.labels))
        lines = ["", f"{'label':{width}}  precision  recall      F1   texts"]
        lines += [
            f"{label:{width}}  {precision:9.1f}  {recall:6.1f}  {f1:6.1f}  {count:6,}"
            for label, precision, recall, f1, count in self.by_label
        ]
        cells = [[f"{count:,}" for count in row] for row in self.confusion]
        wide = [max(len(label), *(len(row[place]) for row in cells)) for place, label in enumerate(self.labels)]
        heads = "  ".join(f"{label:>{room}}" for label, room in zip(self.labels, wide, strict=True))
        lines += ["", "what is taken for what: a row is what was expected, a column what was said", ""]
        lines.append(f"{'':{width}}  {heads}")
        for label, row in zip(self.labels, cells, strict=True):
            lines.append(
                f"{label:{width}}  " + "  ".join(f"{cell:>{room}}" for cell, room in zip(row, wide, strict=True))
            )
        return lines

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.tables()])


def score_labels(
    probabilities: Sequence[Sequence[float]], labels: Sequence[str], expected: Sequence[str]
) -> LabelScores:
    """Of probabilities [texts][labels] and the label expected of each text; one that is not known is always missed."""
    if len(probabilities) != len(expected):
        raise ValueError(f"{len(probabilities)} answers came for {len(expected)} texts; expected one each")
    if not expected:
        raise ValueError("no text came; expected at least one to score")
    strange = sorted(set(expected) - set(labels))
    every = [*labels, *strange]
    numbers = {label: number for number, label in enumerate(every)}
    chances = np.zeros((len(expected), len(every)))
    chances[:, : len(labels)] = np.asarray(probabilities, float)
    gold, said = np.array([numbers[label] for label in expected]), chances.argmax(1)
    confusion = np.zeros((len(every), len(every)), np.int64)
    np.add.at(confusion, (gold, said), 1)
    right = gold == said
    accuracy = float(right.mean())
    return LabelScores(
        accuracy=100 * accuracy,
        standard_error=100 * math.sqrt(accuracy * (1 - accuracy) / len(gold)),
        macro_f1=_macro_f1(confusion),
        log_loss=float(-np.log(np.maximum(chances[np.arange(len(gold)), gold], LEAST)).mean()),
        calibration_error=_calibration_error(chances.max(1), right),
        texts=len(gold),
        labels=every,
        confusion=confusion.tolist(),
    )


def _macro_f1(confusion: np.ndarray[Any, Any]) -> float:
    both = confusion.sum(0) + confusion.sum(1)
    met = both > 0
    return float(100 * (2 * confusion.diagonal()[met] / both[met]).mean())


def _calibration_error(confidence: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> float:
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [abs(right[bins == each].sum() - confidence[bins == each].sum()) for each in np.unique(bins)]
    return float(100 * sum(gaps) / len(right))
