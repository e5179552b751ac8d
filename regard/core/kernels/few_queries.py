"""Attention of one or a few queries per row to the keys of a Memory, as a decoder computes it at every step.

With T = 1 the energies [..., 1, S] are small: they are computed by their definition, in as few operations as possible.
A recurrent decoder takes this step hundreds of times a second; on a GPU each operation costs a kernel launch.

    e = score(q, k),      w = normalizer(e),      context = w · value
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from regard.core.kernels.cpu.additive_reads import AdditiveReads
from regard.core.kernels.kernel import Kernel
from regard.core.local import LocalPredictive
from regard.core.normalizers import MASKED_ENERGY, Entmax, Normalizer, Softmax
from regard.core.patterns import Causal, Full
from regard.core.request import Request
from regard.core.result import Result
from regard.core.scores import Additive, Score, at_least_float32, terms_of
from regard.runtime.precision import without_autocast

MAX_QUERIES = 16
"""the largest number of queries per row that this kernel takes, if gradients are off; in beam search, of hypotheses"""


class PreparedKeys(NamedTuple):
    """What all reads of a memory share."""

    key: Tensor  # k' [..., S, D], in float32 or better
    padding: Tensor | None  # bool [..., 1, S]: True at padding; None: all keys are real
    additive: AdditiveReads | None  # for an additive score; None where it does not pay

    @classmethod
    def of(cls, score: Score, key: Tensor, value: Tensor, visible: Tensor | None) -> PreparedKeys:
        """Prepare k' [..., S, D] and value [..., S, Dv] for many reads in the current grad mode and autocast."""
        key = at_least_float32(key)
        padding = None if visible is None else ~visible[..., None, :]
        additive = None
        # On a GPU, tanh is cheap: no exponentials are cached.
        if isinstance(score, Additive) and score.heads is None and not key.is_cuda:
            additive = AdditiveReads(key, at_least_float32(score.vector), at_least_float32(value), padding)
        return cls(key, padding, additive)


class FewQueries(Kernel):
    """The energies and weights of a few queries, by their definition."""

    name = "few queries"

    def refuse(self, request: Request) -> str | None:
        if not request.remembered:
            return "the keys are not those of a memory"
        limit = 1 if torch.is_grad_enabled() else MAX_QUERIES
        if request.queries > limit:
            return f"{request.queries} queries per row; at most {limit}" + (" with gradients" if limit == 1 else "")
        if (reason := unsupported(request.score, request.normalizer, request.dropout)) is not None:
            return reason
        if request.bias is not None or request.allowed is not None:
            return "a bias or a mask of pairs"
        if not _sees_all_keys(request):
            return "the pattern hides keys"
        return None

    def run(self, request: Request) -> Result:
        """Attend with query [..., T, Dq] to k' [..., S, D] and value [..., S, Dv].

        Keys that several queries share, [B, 1, S, D] for queries [B, k, 1, Dq], are read by all in one product.
        """
        prepared, value, normalizer = request.prepared, request.value, request.normalizer
        if not isinstance(prepared, PreparedKeys):
            padding = None if request.visible is None else ~request.visible[..., None, :]
            prepared = PreparedKeys(at_least_float32(request.key), padding, None)
        key, padding, additive = prepared
        query = request.query
        shared = query.dim() > 2 and key.dim() == query.dim() and key.shape[-3] == 1
        if shared:
            query = query.transpose(-3, -2)  # [..., 1, k, Dq]
        terms = terms_of(request.score, query, key)
        if additive is not None and torch.is_grad_enabled():
            if normalizer == Softmax() and additive.supports(terms.query):
                with without_autocast(query.device):
                    context, weights = additive.read(at_least_float32(terms.query))
                return Result(context.to(value.dtype), weights=weights)
            energies = terms.energies()
        else:
            energies = terms.energies() if additive is None else additive.energies(at_least_float32(terms.query))
        if padding is not None:
            energies = energies.masked_fill(padding, MASKED_ENERGY)  # [..., T, S]
        weights = _normalize(energies, normalizer)
        if padding is not None:
            weights = weights.masked_fill(padding, 0)
        context = weights.to(value.dtype) @ value  # [..., T, Dv]
        if shared:
            weights, context = weights.transpose(-3, -2), context.transpose(-3, -2)
        return Result(context, weights=weights)


def unsupported(score: Score, normalizer: Normalizer, dropout: float) -> str | None:
    """Return why `FewQueries` cannot compute such attention; None if it can."""
    if not score.has_terms:
        return f"{score.title} belongs to no family of scores"
    if not isinstance(normalizer, Entmax):
        return f"{type(normalizer).__name__} chooses one key"
    return "dropout" if dropout > 0 else None


def _sees_all_keys(request: Request) -> bool:
    """Return whether the pattern hides no key from any query; at the last position, `Causal` hides none."""
    pattern = request.pattern
    if isinstance(pattern, LocalPredictive):
        return False
    return pattern == Full() or (pattern == Causal() and request.position >= request.keys - 1)


def _normalize(energies: Tensor, normalizer: Normalizer) -> Tensor:
    """Return the weights; for softmax with torch's own kernel."""
    if isinstance(normalizer, Softmax):
        return torch.softmax(energies / normalizer.temperature if normalizer.temperature != 1 else energies, -1)
    assert isinstance(normalizer, Entmax)
    return normalizer(energies)
