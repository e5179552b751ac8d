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
REACH = 20.0
"""up to which e^{2q} e^{2k} stays within float32"""


def suits(score: Score, normalizer: Normalizer, full: bool, dropout: float) -> bool:
    """Is there nothing but score, lengths and a normalizer of the entmax family?"""
    return score.lean and full and dropout == 0 and isinstance(normalizer, Entmax)


def read(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score,
    normalizer: Normalizer,
    padding: Tensor | None,
    exponentials: Tensor | None,
) -> Result:
    """query [..., 1, Dq]; k' [..., S, D], value [..., S, Dv], padding bool [..., 1, S] out of a memory.

    `exponentials`, e^{2k'}, may be given where no gradient is wanted. Keys that several queries share, [B, 1, S, D] for
    queries [B, k, 1, Dq], are read by all of them at once.
    """
    assert isinstance(normalizer, Entmax)
    shared = query.dim() > 2 and key.dim() == query.dim() and key.shape[-3] == 1
    if shared:
        query = query.transpose(-3, -2)  # [..., 1, k, Dq]
    terms = score.terms(query, key)
    assert terms is not None
    with torch.autocast(query.device.type, enabled=False):  # energies stay in float32
        energies = _energies(terms, exponentials)  # [..., T, S]
    if padding is not None:
        energies = energies.masked_fill(padding, HIDDEN)
    weights = _normalized(energies, normalizer)
    if padding is not None:
        weights = weights.masked_fill(padding, 0)
    context = weights.to(value.dtype) @ value  # [..., T, Dv]
    if shared:
        weights, context = weights.transpose(-3, -2), context.transpose(-3, -2)
    return Result(context, weights=weights)


def exponentials(key: Tensor) -> Tensor | None:
    """e^{2k'}, if within reach."""
    return (2 * key).exp() if key.numel() and bool(key.abs().max() <= REACH) else None


def _energies(terms: Bilinear | AdditiveTerms, exponentials: Tensor | None) -> Tensor:
    """As `energies_of`, with the sum over features as a product of matrices.

    Exponentials of the keys make Σ v tanh(q + k) = Σ v − 2 Σ v / (e^{2q} e^{2k} + 1): no tanh for each pair.
    """
    query, key = wide(terms.query), wide(terms.key)
    if isinstance(terms, Bilinear):
        return query @ key.mT * terms.scale
    vector = wide(terms.vector)[..., :, None]
    if exponentials is not None and bool(query.abs().max() <= REACH):
        pairs = (2 * query).exp()[..., :, None, :] * exponentials[..., None, :, :]
        return (vector.sum() - 2 * (pairs.add_(1).reciprocal_() @ vector))[..., 0]
    pairs = torch.tanh(query[..., :, None, :] + key[..., None, :, :])  # [..., T, S, H]
    return (pairs @ vector)[..., 0]


def _normalized(energies: Tensor, normalizer: Entmax) -> Tensor:
    if isinstance(normalizer, Softmax):
        return torch.softmax(energies / normalizer.temperature if normalizer.temperature != 1 else energies, -1)
    return normalizer(energies)
