"""One query for each row of a memory, or a few: what a decoder does at every step.

With T = 1 the energies [..., 1, S] are few, and there is nothing to plan: they are computed as they are defined, in as
few operations as possible. A recurrence takes this step hundreds of times a second, on a GPU too, where each operation
costs its launch.

    e = score(q, k),      w = normalizer(e),      context = w · value
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.additive_reads import HIDDEN, AdditiveReads
from regard.core.normalizers import Entmax, Normalizer, Softmax
from regard.core.result import Result
from regard.core.scores import AdditiveTerms, Bilinear, Score, terms_of, wide
from regard.runtime.autocast import without_autocast

FEW = 16
"""queries a row, if nobody asks for gradients"""


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
    reads: AdditiveReads | None,
) -> Result:
    """query [..., 1, Dq]; k' [..., S, D], value [..., S, Dv], padding bool [..., 1, S] out of a memory.

    `reads` are those of an additive score, where it pays to have them. Keys that several queries share, [B, 1, S, D]
    for queries [B, k, 1, Dq], are read by all of them at once.
    """
    assert isinstance(normalizer, Entmax)
    shared = query.dim() > 2 and key.dim() == query.dim() and key.shape[-3] == 1
    if shared:
        query = query.transpose(-3, -2)  # [..., 1, k, Dq]
    terms = terms_of(score, query, key)
    with without_autocast(query.device):  # energies stay in float32
        if reads is None:
            energies = _energies(terms)  # [..., T, S]
        elif not torch.is_grad_enabled():
            energies = reads.energies(wide(terms.query))
        elif normalizer == Softmax() and reads.take(terms.query):
            context, weights = reads.read(wide(terms.query))
            return Result(context.to(value.dtype), weights=weights)
        else:
            energies = _energies(terms)
    if padding is not None:
        energies = energies.masked_fill(padding, HIDDEN)
    weights = _normalized(energies, normalizer)
    if padding is not None:
        weights = weights.masked_fill(padding, 0)
    context = weights.to(value.dtype) @ value  # [..., T, Dv]
    if shared:
        weights, context = weights.transpose(-3, -2), context.transpose(-3, -2)
    return Result(context, weights=weights)


def _energies(terms: Bilinear | AdditiveTerms) -> Tensor:
    """As `energies_of`, with the sum over features as a product of matrices."""
    query, key = wide(terms.query), wide(terms.key)
    if isinstance(terms, Bilinear):
        return query @ key.mT * terms.scale
    pairs = torch.tanh(query[..., :, None, :] + key[..., None, :, :])  # [..., T, S, H]
    return (pairs @ wide(terms.vector)[..., None, :, None])[..., 0]


def _normalized(energies: Tensor, normalizer: Entmax) -> Tensor:
    if isinstance(normalizer, Softmax):
        return torch.softmax(energies / normalizer.temperature if normalizer.temperature != 1 else energies, -1)
    return normalizer(energies)
