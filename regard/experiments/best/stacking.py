"""Weights of the members of an ensemble of classifiers, from texts that the members did not see (Wolpert 1992).

    logits(x) = Σ_g w_g z̄_g(x),      z̄_g: the mean of the logits of the members of kind g
    minimize over w ≥ 0:   1/N Σ_n CE(softmax(logits(x_n)), y_n) + λ Σ_g (w_g − w̄)²

Members of one kind have the same weight: they differ in their seeds alone. The penalty pulls the weights towards each
other where the texts do not tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

PENALTY = 1e-3  # λ
NEGLIGIBLE = 0.02  # the fraction of all weights below which a kind is left out
MIN_WEIGHT = 1e-6  # of a member that is used: where no member knows anything, all weights are nearly 0
MAX_ITERATIONS = 200


class Stack(NamedTuple):
    """The members of an ensemble, in the words of a recipe: `model.states` and `model.member_weights`."""

    states: str
    weights: str


def stacked(kinds: Sequence[str], logits: Tensor, gold: Tensor, trained: Sequence[str]) -> Stack:
    """Return the members with their weights, without those of kinds that add nothing.

    kinds [M], logits [M, N, C] of the members, gold [N]. A model needs a member of the `trained` kinds: if none adds
    anything, one of them stays, with weight 0.
    """
    groups = list(dict.fromkeys(kinds))
    means = [logits[[place for place, kind in enumerate(kinds) if kind == group]].mean(0) for group in groups]
    weights = kind_weights(torch.stack(means), gold)
    used = {group: float(w) for group, w in zip(groups, weights, strict=True) if w >= NEGLIGIBLE * weights.sum()}
    members = [(kind, max(MIN_WEIGHT, used[kind] / kinds.count(kind))) for kind in kinds if kind in used]
    if not any(kind in trained for kind, _ in members):
        members = [(next(kind for kind in kinds if kind in trained), 0.0), *members]
    return Stack(" + ".join(kind for kind, _ in members), " + ".join(f"{weight:.6f}" for _, weight in members))


def kind_weights(logits: Tensor, gold: Tensor) -> Tensor:
    """Return the weights [G] of kinds with logits [G, N, C]. w = v² is at least 0."""
    start = len(logits) ** -0.5
    roots = torch.full((len(logits),), start, dtype=torch.float64, requires_grad=True)
    exact = logits.double()
    optimizer = torch.optim.LBFGS([roots], max_iter=MAX_ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        weights = roots.square()
        spread = (weights - weights.mean()).square().sum()
        value = functional.cross_entropy(torch.tensordot(weights, exact, 1), gold) + PENALTY * spread
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[arg-type]  # torch's types expect a float
    return roots.detach().square()
