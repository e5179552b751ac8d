"""Regularized linear and logistic regression on small tables, with the prior chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Vector = np.ndarray[Any, np.dtype[np.float64]]
Matrix = np.ndarray[Any, np.dtype[np.float64]]

FOLDS = 5
PRIORS = (1.0, 10.0, 100.0, 1000.0)  # λ
BIAS_PRIOR = 0.01  # keeps the bias finite where all outcomes are equal
MAX_STEPS, MAX_STEP, TOLERANCE = 50, 5.0, 1e-8  # of Newton's method
MAX_LOGIT = 30.0


@dataclass(frozen=True)
class Linear:
    """The function b + w·x."""

    bias: float
    weights: Vector  # [features]

    def __call__(self, table: Matrix) -> Vector:
        """Return the values [rows] of a table [rows, features]."""
        return np.asarray(self.bias + table @ self.weights, np.float64)


Fit = Callable[[Matrix, Vector, float], Linear]
Loss = Callable[[Vector, Vector], float]  # of values [rows] given outcomes [rows]


def sigmoid(logits: Vector) -> Vector:
    """Return 1 / (1 + e^−x)."""
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -MAX_LOGIT, MAX_LOGIT))), np.float64)


def logistic(table: Matrix, outcomes: Vector, prior: float) -> Linear:
    """Return the logits that minimize Σ_n CE(σ(b + w·x_n), y_n) + λ/2 ‖w‖², for standardized features x_n and outcomes
    y_n from 0 to 1, by Newton's method."""
    rows, mean, scale = _standardized(table)
    penalty = np.array([BIAS_PRIOR, *[prior] * table.shape[1]])
    weights = np.zeros(len(penalty))
    for _ in range(MAX_STEPS):
        probabilities = sigmoid(rows @ weights)
        gradient = rows.T @ (probabilities - outcomes) + penalty * weights
        curvature = (rows * (probabilities * (1 - probabilities))[:, None]).T @ rows + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        largest = float(np.abs(step).max())
        weights = weights - step * min(1.0, MAX_STEP / max(largest, TOLERANCE))
        if largest < TOLERANCE:
            break
    return _of_original(weights, mean, scale)


def ridge(table: Matrix, outcomes: Vector, prior: float) -> Linear:
    """Return the function that minimizes Σ_n (b + w·x_n − y_n)² + λ ‖w‖², for standardized features x_n."""
    rows, mean, scale = _standardized(table)
    penalty = np.diag([0.0, *[prior] * table.shape[1]])
    weights = np.asarray(np.linalg.solve(rows.T @ rows + penalty, rows.T @ outcomes), np.float64)
    return _of_original(weights, mean, scale)


def log_loss(logits: Vector, outcomes: Vector) -> float:
    """Return the mean cross-entropy of outcomes from 0 to 1."""
    return float(np.mean(np.logaddexp(0, logits) - outcomes * logits))


def squared_loss(values: Vector, outcomes: Vector) -> float:
    return float(np.mean((values - outcomes) ** 2))


def cross_validated(
    fit: Fit, loss: Loss, table: Matrix, outcomes: Vector, groups: np.ndarray
) -> tuple[Linear, float, Vector | None]:
    """Return the fit with the λ of the lowest loss by cross-validation, this λ, and the values of all rows by fits
    without their fold. Rows of the same group are in the same fold; a single group cannot be split: None."""
    numbers = np.unique(groups)
    folds = min(FOLDS, len(numbers))
    if folds < 2:
        return fit(table, outcomes, PRIORS[-1]), PRIORS[-1], None
    fold = np.searchsorted(numbers, groups) % folds
    held_out = {prior: np.zeros(len(fold)) for prior in PRIORS}
    for prior, values in held_out.items():
        for number in range(folds):
            own = fold == number
            values[own] = fit(table[~own], outcomes[~own], prior)(table[own])
    best = min(PRIORS, key=lambda prior: loss(held_out[prior], outcomes))
    return fit(table, outcomes, best), best, held_out[best]


def _standardized(table: Matrix) -> tuple[Matrix, Vector, Vector]:
    """Return (rows with a leading 1 and features of mean 0 and deviation 1; the means; the deviations)."""
    mean, scale = table.mean(0), table.std(0)
    scale = np.where(scale > 1e-9, scale, np.inf)  # a constant feature gets the weight 0
    return np.concatenate([np.ones((len(table), 1)), (table - mean) / scale], 1), mean, scale


def _of_original(weights: Vector, mean: Vector, scale: Vector) -> Linear:
    """Return the function of the original features."""
    own = weights[1:] / scale
    return Linear(float(weights[0] - own @ mean), own)
