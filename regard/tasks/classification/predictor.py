"""A trained classifier in use: `regard.load(folder).classify("…")`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from regard.metrics.classification import LabelScores, score_labels
from regard.models.documents.classifier import TextClassifier
from regard.runtime.precision import check_finite
from regard.tasks.classification.labelling import Labeller, Labelling
from regard.tasks.predictor import Predictor, text_list
from regard.text.documents import Reader
from regard.text.pairs import Pair

MAX_NAMED_LABELS = 8  # labels that an error names


@dataclass(eq=False, repr=False)
class Classifier(Predictor[TextClassifier]):
    """A model with its vocabulary and labels, ready to classify."""

    reader: Reader
    labels: list[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._labeller = Labeller(self.model, self.reader, self.labels, self.card)

    @property
    def temperature(self) -> float:
        """the temperature of calibrated probabilities: logits are divided by it; fitted on dev after training"""
        value = self.card.get("temperature")
        if not isinstance(value, (int, float)) or not value > 0:
            raise ValueError("calibrated: this model has no temperature in its card; its training did not end")
        return float(value)

    @overload
    def classify(self, text: str) -> str: ...  # type: ignore[overload-overlap]
    @overload
    def classify(self, text: Sequence[str]) -> list[str]: ...
    def classify(self, text: str | Sequence[str]) -> str | list[str]:
        """Return the label of a text, or of each of several."""
        labels = [answer.label for answer in self.answers(text_list(text))]
        return labels[0] if isinstance(text, str) else labels

    def answers(self, texts: Sequence[str], calibrated: bool = False, details: bool = False) -> list[Labelling]:
        """Return the probabilities of all labels for each text; `details`: with its attention."""
        with self.autocast():
            temperature = self.temperature if calibrated else 1.0
            labellings = self._labeller.label(text_list(texts), self.device, temperature, details)
        check_finite(labelling.probability for labelling in labellings)
        return labellings

    def logits(self, texts: Sequence[str]) -> Tensor:
        """Return logits [texts, labels]."""
        with self.autocast():
            logits = self._labeller.logits(texts, self.device)
        check_finite(logits.flatten().tolist())
        return logits

    def member_logits(self, texts: Sequence[str]) -> Tensor:
        """Return the logits of each member of the ensemble, [members, texts, labels]."""
        with self.autocast():
            logits = self._labeller.member_logits(texts, self.device)
        check_finite(logits.flatten().tolist())
        return logits

    def evaluate(self, pairs: Sequence[Pair], calibrated: bool = False, *, allow_unknown: bool = False) -> LabelScores:
        """Return the scores over (text, label) pairs.

        A label that the model does not know is an error, unless `allow_unknown`: then its texts count as mistakes.
        """
        if not allow_unknown:
            self.check_labels([pair.target for pair in pairs])
        temperature = self.temperature if calibrated else 1.0
        probabilities = torch.softmax(self.logits([pair.source for pair in pairs]) / temperature, -1)
        return score_labels(probabilities.tolist(), self.labels, [pair.target for pair in pairs])

    def check_labels(self, expected: Sequence[str], name: str = "labels") -> None:
        """Raise a ValueError for labels that the model does not know; `name` is what the error calls them."""
        unknown = [label for label in expected if label not in self.labels]
        if unknown:
            names, known = (some_of(each) for each in (sorted(set(unknown)), self.labels))
            raise ValueError(
                f"{name}: expected those of the model ({known}), got {names} in {len(unknown):,} of {len(expected):,} "
                "texts"
            )

    def calibrate(self, dev: Sequence[Pair]) -> None:
        """Fit the temperature on dev, and put it into the card."""
        known = [pair for pair in dev if pair.target in self.labels]
        if known:
            gold = torch.tensor([self.labels.index(pair.target) for pair in known])
            self.card["temperature"] = round(fitted_temperature(self.logits([pair.source for pair in known]), gold), 4)


def some_of(labels: Sequence[str]) -> str:
    """Return the first few labels, and how many more there are."""
    more = f" and {len(labels) - MAX_NAMED_LABELS:,} more" if len(labels) > MAX_NAMED_LABELS else ""
    return ", ".join(labels[:MAX_NAMED_LABELS]) + more


def fitted_temperature(logits: Tensor, gold: Tensor, minimum: float = 0.05, maximum: float = 20.0) -> float:
    """Return the T of softmax(logits / T) with the smallest log loss (Guo et al. 2017). logits [N, C], gold [N].

    The loss is convex in 1/T, so a golden-section search over log T finds the best in [minimum, maximum].
    """
    exact = logits.double()

    def loss(log: float) -> float:
        return float(torch.nn.functional.cross_entropy(exact / torch.tensor(log).double().exp(), gold))

    low, high = float(torch.tensor(minimum).log()), float(torch.tensor(maximum).log())
    golden = (5**0.5 - 1) / 2
    for _ in range(40):
        first, second = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, second) if loss(first) <= loss(second) else (first, high)
    return float(torch.tensor((low + high) / 2).exp())
