"""Attention with one or a few queries per row, as a decoder computes it at every step.

With T = 1 the energies [..., 1, S] are small and need no plan: they are computed by their definition, in as few
operations as possible. A recurrent decoder takes this step hundreds of times a second; on a GPU each operation costs a
kernel launch.

    e = score(q, k),      w = normalizer(e),      context = w · value
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.additive_reads import MASKED_ENERGY, AdditiveReads
from regard.core.normalizers import Entmax, Normalizer, Softmax
from regard.core.result import Result
from regard.core.scores import AdditiveTerms, Bilinear, Score, at_least_float32, terms_of
from regard.runtime.autocast import without_autocast

MAX_QUERIES = 16
"""the largest number of queries per row that are read without a plan, if gradients are off"""


def suits(score: Score, normalizer: Normalizer, full: bool, dropout: float) -> bool:
    """Return whether `read` supports this attention: a score with terms, no mask but lengths, an entmax normalizer."""
    return score.has_terms and full and dropout == 0 and isinstance(normalizer, Entmax)


def read(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score,
    normalizer: Normalizer,
    padding: Tensor | None,
    reads: AdditiveReads | None,
) -> Result:
    """Attend with query [..., 1, Dq] to a memory's k' [..., S, D], value [..., S, Dv], padding bool [..., 1, S].

    `reads` caches what many reads with an additive score share; None where that does not pay. Keys that several
    queries share, [B, 1, S, D] for queries [B, k, 1, Dq], are read by all of them in one product.
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
            energies = reads.energies(at_least_float32(terms.query))
        elif normalizer == Softmax() and reads.supports(terms.query):
            context, weights = reads.read(at_least_float32(terms.query))
            return Result(context.to(value.dtype), weights=weights)
        else:
            energies = _energies(terms)
    if padding is not None:
        energies = energies.masked_fill(padding, MASKED_ENERGY)
    weights = _normalize(energies, normalizer)
    if padding is not None:
        weights = weights.masked_fill(padding, 0)
    context = weights.to(value.dtype) @ value  # [..., T, Dv]
    if shared:
        weights, context = weights.transpose(-3, -2), context.transpose(-3, -2)
    return Result(context, weights=weights)


def _energies(terms: Bilinear | AdditiveTerms) -> Tensor:
    """Compute `energies_of` with the sum over features as a matrix product."""
    query, key = at_least_float32(terms.query), at_least_float32(terms.key)
    if isinstance(terms, Bilinear):
        return query @ key.mT * terms.scale
    pairs = torch.tanh(query[..., :, None, :] + key[..., None, :, :])  # [..., T, S, H]
    return (pairs @ at_least_float32(terms.vector)[..., None, :, None])[..., 0]


def _normalize(energies: Tensor, normalizer: Entmax) -> Tensor:
    """Return the weights; for softmax with torch's own kernel."""
    if isinstance(normalizer, Softmax):
        return torch.softmax(energies / normalizer.temperature if normalizer.temperature != 1 else energies, -1)
    return normalizer(energies)
