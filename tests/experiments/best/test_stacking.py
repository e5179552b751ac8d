"""Weights of the members of an ensemble, beside scipy's solution of the same problem."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch.nn import functional

from regard.experiments.best.stacking import PENALTY, kind_weights, stacked
from regard.models.documents.classifier import ClassifierOptions


def drawn(qualities: list[float], texts: int = 400, labels: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits [members, texts, labels] that contain the label as strongly as each quality says, and labels."""
    random = torch.Generator().manual_seed(3)
    gold = torch.randint(labels, (texts,), generator=random)
    noise = torch.randn(len(qualities), texts, labels, generator=random)
    return torch.tensor(qualities)[:, None, None] * functional.one_hot(gold, labels) + noise, gold


@pytest.mark.parametrize("qualities", [[1.0, 1.0], [2.0, 0.5, 1.0], [1.5, -1.0, 0.7, 0.0]])
def test_the_weights_are_those_of_a_general_solver(qualities: list[float]) -> None:
    logits, gold = drawn(qualities)

    def loss(weights: np.ndarray) -> float:
        mixed = torch.tensordot(torch.tensor(weights), logits.double(), 1)
        spread = np.square(weights - weights.mean()).sum()
        return float(functional.cross_entropy(mixed, gold)) + PENALTY * spread

    start = np.full(len(qualities), 0.5)
    expected = minimize(loss, start, bounds=[(0, None)] * len(qualities), method="L-BFGS-B").x
    weights = kind_weights(logits, gold)
    assert weights.numpy() == pytest.approx(expected, abs=5e-3)


def test_members_of_a_kind_share_its_weight_and_useless_kinds_are_left_out() -> None:
    logits, gold = drawn([1.0, 1.0, -1.0, 2.0])
    kinds = ["embeddings", "embeddings", "convolution", "tfidf"]
    stack = stacked(kinds, logits, gold, ["embeddings", "convolution"])
    assert stack.states == "embeddings + embeddings + tfidf"
    options = ClassifierOptions(states=stack.states, member_weights=stack.weights)
    assert options.weights is not None and options.weights[0] == options.weights[1] < options.weights[2]
    by_kind = kind_weights(torch.stack([logits[:2].mean(0), logits[2], logits[3]]), gold)
    assert options.weights[0] == pytest.approx(float(by_kind[0]) / 2, abs=1e-4)


def test_a_trained_member_stays_even_if_it_adds_nothing() -> None:
    logits, gold = drawn([-2.0, 2.0])
    stack = stacked(["convolution", "tfidf"], logits, gold, ["convolution"])
    assert stack.states == "convolution + tfidf" and stack.weights.startswith("0.000000 + ")
    assert ClassifierOptions(states=stack.states, member_weights=stack.weights).weights


def test_members_that_know_nothing_have_weights_that_a_model_accepts() -> None:
    logits, gold = torch.zeros(2, 60, 3), torch.arange(60) % 3
    stack = stacked(["embeddings", "tfidf"], logits - gold[:, None].eq(torch.arange(3)).float(), gold, ["embeddings"])
    assert ClassifierOptions(states=stack.states, member_weights=stack.weights).weights
