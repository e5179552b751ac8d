"""Soft labels: training texts with a label and a distribution over the labels, as in distillation (Hinton et al. 2015).

    loss = (1 − λ) CE(p, label) + λ CE(p, q)

q is the distribution of a text, λ is `training.soft_labels`. The distributions should come from models that did not see
the text with its label: a model that memorized the label has nothing to add to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor
from torch.nn import functional

from regard.tasks.spec import TrainingData
from regard.tasks.text_data import Pairs
from regard.text.documents import IGNORED

SUM_TOLERANCE = 1e-3  # how far from 1 the probabilities of a text may sum up to


@dataclass(frozen=True)
class SoftLabels:
    """The distributions q [N, C] of N texts over `labels`."""

    labels: Sequence[str]
    probabilities: Tensor

    def of(self, rows: Sequence[int]) -> SoftLabels:
        """Return those of some of the texts."""
        return replace(self, probabilities=self.probabilities[list(rows)])

    def ordered(self, labels: Sequence[str]) -> Tensor:
        """Return the distributions [N, C] over labels in this order."""
        missing = sorted(set(labels) - set(self.labels))
        if missing:
            raise ValueError(f"soft labels: expected a column for each label, got none for {', '.join(missing)}")
        columns = self.probabilities[:, [list(self.labels).index(label) for label in labels]]
        return columns / columns.sum(-1, keepdim=True)


@dataclass(frozen=True)
class SoftLabelled:
    """Training data of `regard.train(..., task="classify")`: (text, label) pairs, and a distribution for each."""

    texts: Sequence[tuple[str, str]]
    soft_labels: SoftLabels

    def __post_init__(self) -> None:
        q, expected = self.soft_labels.probabilities, (len(self.texts), len(self.soft_labels.labels))
        if q.shape != expected:
            raise ValueError(f"soft labels: expected probabilities {list(expected)}, got {list(q.shape)}")
        if not (q >= 0).all() or not ((q.sum(-1) - 1).abs() < SUM_TOLERANCE).all():
            raise ValueError("soft labels: expected probabilities of at least 0 that sum up to 1 for each text")


@dataclass(frozen=True)
class SoftLabelledData(TrainingData[Pairs]):
    """Training data with the soft labels of the training texts."""

    soft_labels: SoftLabels | None = None

    @classmethod
    def of(cls, data: TrainingData[Pairs], soft_labels: SoftLabels) -> SoftLabelledData:
        """Return the data with the soft labels of all lines; a run resumes only with the same ones."""
        rows = [pair.line - 1 for pair in data.train]
        q = soft_labels.probabilities.contiguous().cpu().numpy().tobytes()
        digest = hashlib.sha256(data.digest.encode() + "\t".join(soft_labels.labels).encode() + q).hexdigest()
        facts = {field.name: getattr(data, field.name) for field in fields(TrainingData)} | {"digest": digest}
        return cls(**facts, soft_labels=soft_labels.of(rows))


def soft_cross_entropy(logits: Tensor, soft: Tensor, gold: Tensor, weights: Tensor | None) -> Tensor:
    """Return the mean of CE(p, q) over texts that count, weighted by their labels.

    logits [N, C], soft [N, C], gold [N], IGNORED where there is no text, weights [C]. Nothing synchronizes with a GPU.
    """
    real = gold != IGNORED
    counted = real.to(logits.dtype) if weights is None else weights[gold.masked_fill(~real, 0)] * real
    losses = -(soft * functional.log_softmax(logits, -1)).sum(-1)
    return (losses * counted).sum() / counted.sum()


def mixed_targets(gold: Sequence[int], labels: int, soft: Tensor | None, fraction: float) -> Tensor:
    """Return (1 − λ) one-hot(label) + λ q, [N, C]; without soft labels, one-hot(label)."""
    hard = functional.one_hot(torch.tensor(gold), labels).float()
    return hard if soft is None else torch.lerp(hard, soft, fraction)
