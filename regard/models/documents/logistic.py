"""Multinomial logistic regression on sparse features, fitted to convergence.

    minimize over V, b:   Σ_n w_n CE(softmax(W x_n + b), q_n) + ‖V‖² / (2 C),      W = S ∘ V

x_n are sparse rows, q_n the label distribution of a text (one-hot, or soft labels), w_n its weight. The problem is
convex; L-BFGS starts at 0, so the result depends on the data alone. As in scikit-learn, a larger C regularizes less. A
weight with a larger scale S, which is 1 if not given, is regularized less, too.

A regression that is fitted further starts at its weights W', b', and is regularized towards them instead of towards 0:

    minimize over V, b:   Σ_n w_n CE(softmax(W x_n + b), q_n) + (‖V‖² + ‖b − b'‖²) / (2 C),      W = W' + S ∘ V
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

MAX_ITERATIONS, HISTORY = 100, 10
GRADIENT_TOLERANCE, CHANGE_TOLERANCE = 1e-6, 1e-8


class SparseRows(NamedTuple):
    """A sparse matrix [N, F]: M values with their rows, in ascending order, and columns."""

    rows: Tensor  # [M]
    columns: Tensor  # [M]
    values: Tensor  # [M]
    shape: tuple[int, int]

    @property
    def transposed(self) -> SparseRows:
        order = self.columns.argsort(stable=True)
        return SparseRows(self.columns[order], self.rows[order], self.values[order], self.shape[::-1])

    @property
    def offsets(self) -> Tensor:
        """where each row begins: [N]"""
        counts = torch.bincount(self.rows, minlength=self.shape[0])
        return counts.cumsum(0) - counts


class SparseProduct:
    """The product of a sparse matrix [N, F] with dense ones [F, C]: `embedding_bag` has the fastest one on a CPU."""

    def __init__(self, matrix: SparseRows) -> None:
        self._matrix, self._offsets = matrix, matrix.offsets

    def __call__(self, dense: Tensor) -> Tensor:
        columns, values = self._matrix.columns, self._matrix.values
        return functional.embedding_bag(columns, dense, self._offsets, per_sample_weights=values, mode="sum")


def logistic_regression(
    features: SparseRows,
    targets: Tensor,
    weights: Tensor,
    c: float,
    scale: Tensor | None = None,
    before: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the weights W [F, C] and the bias [C], given label distributions [N, C] and weights [N] of the texts.

    `scale` is S [F, C]. `before` are the weights and the bias of a regression that is fitted further.
    """
    forward, backward = SparseProduct(features), SparseProduct(features.transposed)
    zeros = torch.zeros(features.shape[1], targets.shape[1]), torch.zeros(targets.shape[1])
    center, bias_center = zeros if before is None else before
    change, bias = torch.zeros_like(center), bias_center.clone()  # V, b
    count, penalty = len(targets), 1 / (c * len(targets))
    optimizer = torch.optim.LBFGS(
        [change, bias],
        max_iter=MAX_ITERATIONS,
        history_size=HISTORY,
        tolerance_grad=GRADIENT_TOLERANCE,
        tolerance_change=CHANGE_TOLERANCE,
        line_search_fn="strong_wolfe",
    )

    def table() -> Tensor:
        return center + (change if scale is None else scale * change)

    def loss() -> Tensor:
        log_probs = functional.log_softmax(forward(table()) + bias, -1)
        # By hand: autograd's gradient of `embedding_bag` is many times slower than a product with the transpose.
        gradient = (log_probs.exp() - targets) * weights[:, None] / count
        table_gradient = backward(gradient)
        change.grad = (table_gradient if scale is None else scale * table_gradient).add_(change, alpha=penalty)
        bias.grad = gradient.sum(0)
        losses = -(targets * log_probs).sum(-1) * weights
        loss = losses.mean() + penalty / 2 * change.square().sum()
        if before is None:
            return loss
        bias.grad.add_(bias - bias_center, alpha=penalty)
        return loss + penalty / 2 * (bias - bias_center).square().sum()

    optimizer.step(loss)  # type: ignore[arg-type]  # torch's types expect a float
    return table(), bias
