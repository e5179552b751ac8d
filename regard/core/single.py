"""One query for each row of a memory: what a decoder does at every step.

With T = 1 the energies [..., 1, S] are few, and there is nothing to plan: they are computed as they are defined, in as
few operations as possible. A recurrence takes this step hundreds of times a second, on a GPU too, where each operation
costs its launch.

    e = score(q, k),      w = normalizer(e),      context = w · value
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.normalizers import Entmax, Normalizer, Softmax
from regard.core.result import Result
from regard.core.scores import AdditiveTerms, Bilinear, Score, wide

HIDDEN = -1e30
"""The energy of padding: finite, so that a row of nothing but padding has finite gradients."""


def suits(score: Score, normalizer: Normalizer, full: bool, dropout: float) -> bool:
    """Is there nothing but score, lengths and a normalizer of the entmax family?"""
    return score.lean and full and dropout == 0 and isinstance(normalizer, Entmax)


def read(
    query: Tensor, key: Tensor, value: Tensor, score: Score, normalizer: Normalizer, padding: Tensor | None
) -> Result:
    """query [..., 1, Dq]; k' [..., S, D], value [..., S, Dv], padding bool [..., 1, S] out of a memory."""
    assert isinstance(normalizer, Entmax)
    terms = score.terms(query, key)
    assert terms is not None
    energies = _energies(terms)  # [..., 1, S]
    if padding is not None:
        energies = energies.masked_fill(padding, HIDDEN)
    weights = _normalized(energies, normalizer)
    if padding is not None:
        weights = weights.masked_fill(padding, 0)
    return Result(weights.to(value.dtype) @ value, weights=weights)


def _energies(terms: Bilinear | AdditiveTerms) -> Tensor:
    """As `energies_of`, with the sum over features as a product of matrices."""
    if isinstance(terms, Bilinear):
        return wide(terms.query) @ wide(terms.key).mT * terms.scale
    pairs = torch.tanh(wide(terms.key) + wide(terms.query))  # [..., S, H]
    return (pairs @ wide(terms.vector)[..., :, None]).mT  # [..., 1, S]


def _normalized(energies: Tensor, normalizer: Entmax) -> Tensor:
    if isinstance(normalizer, Softmax):
        return torch.softmax(energies / normalizer.temperature if normalizer.temperature != 1 else energies, -1)
    return normalizer(energies)
