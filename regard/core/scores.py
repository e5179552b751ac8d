"""Scores: how well a query and a key fit.

Each score has one readable definition, `energies(query, key)`. Kernels compute with its terms, which belong to one of
two families: *bilinear*, (q', k', scale) with energy scale · q'ᵀk', or *additive*, (q', k', v) with energy
vᵀ tanh(q' + k'). A custom score may define `energies` alone; it then runs on the reference.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.core.checks import positive, shape, whole_number
from regard.runtime.precision import without_autocast

Select = Callable[[Tensor], Tensor]


class BilinearTerms(NamedTuple):
    """Terms of a bilinear score: energy = scale · q'ᵀk'"""

    query: Tensor  # q' [..., T, D]
    key: Tensor  # k' [..., S, D]
    scale: float

    def energies(self) -> Tensor:
        """Return the energies [..., T, S], in float32 or better."""
        with without_autocast(self.query.device):  # which would compute the product in half precision
            return at_least_float32(self.query) @ at_least_float32(self.key).mT * self.scale

    def energies_with(self, key: Tensor) -> Tensor:
        """Return the energy [..., T] of each query with its own key of k' [..., T, D]."""
        return (at_least_float32(self.query) * at_least_float32(key)).sum(-1) * self.scale

    def at_temperature(self, temperature: float) -> tuple[float, None]:
        """Return (scale, v) of the energies divided by a temperature; this family has no v."""
        return self.scale / temperature, None

    def select(self, states: Select, vectors: Select) -> BilinearTerms:
        """Return the terms of some heads, which `states` selects from [..., N, D] and `vectors` from [..., H]."""
        return BilinearTerms(states(self.query), states(self.key), self.scale)

    @property
    def flops_per_pair(self) -> int:
        """A multiplication and an addition per feature."""
        return 2 * self.query.shape[-1]


class AdditiveTerms(NamedTuple):
    """Terms of an additive score: energy = vᵀ tanh(q' + k')"""

    query: Tensor  # q' [..., T, H]
    key: Tensor  # k' [..., S, H]
    vector: Tensor  # v [..., H], leading dims as those of q' and k' or fewer

    def energies(self) -> Tensor:
        """Return the energies [..., T, S], in float32 or better; [..., T, S, H] is materialized."""
        query, key, vector = map(at_least_float32, self)
        with without_autocast(query.device):
            pairs = torch.tanh(query[..., :, None, :] + key[..., None, :, :])  # [..., T, S, H]
            return (pairs @ vector[..., None, :, None])[..., 0]

    def energies_with(self, key: Tensor) -> Tensor:
        """Return the energy [..., T] of each query with its own key of k' [..., T, H]."""
        vector = at_least_float32(self.vector)[..., None, :]
        return (torch.tanh(at_least_float32(self.query) + at_least_float32(key)) * vector).sum(-1)

    def at_temperature(self, temperature: float) -> tuple[float, Tensor]:
        """Return (scale, v) of the energies divided by a temperature."""
        return 1.0, self.vector / temperature

    def select(self, states: Select, vectors: Select) -> AdditiveTerms:
        """Return the terms of some heads, which `states` selects from [..., N, D] and `vectors` from [..., H]."""
        return AdditiveTerms(states(self.query), states(self.key), vectors(self.vector))

    @property
    def flops_per_pair(self) -> int:
        """A sum, a tanh, a multiplication and an addition per hidden unit."""
        return 4 * self.query.shape[-1]


Terms = BilinearTerms | AdditiveTerms  # what kernels compute a score with


class Score(nn.Module, ABC):
    """A function of query [..., T, Dq] and key [..., S, Dk] that returns energies [..., T, S]."""

    @abstractmethod
    def energies(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the energies by the score's definition."""

    def key_side(self, key: Tensor) -> Tensor:
        """Return k': all that can be computed from the keys alone. A Memory caches it."""
        return key

    def terms(self, query: Tensor, key_side: Tensor) -> Terms | None:
        """Return what the kernels compute with; None if the score belongs to neither family."""
        return None

    def expects(self) -> tuple[int | None, int | None]:
        """Return (Dq, Dk) where the parameters determine them, None elsewhere."""
        return None, None

    @property
    def has_terms(self) -> bool:
        """Whether the score belongs to one of the families, so that kernels can compute it and k' can be cached."""
        return type(self).terms is not Score.terms

    @property
    def title(self) -> str:
        """The name of the score in messages."""
        return type(self).__name__

    @property
    def heads(self) -> int | None:
        """The number of heads, each with its own parameters; None: all heads share them."""
        return None


class Dot(Score):
    """qᵀk"""

    def energies(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.mT

    def terms(self, query: Tensor, key_side: Tensor) -> BilinearTerms:
        return BilinearTerms(query, key_side, 1.0)


class ScaledDot(Score):
    """qᵀk / √d (Vaswani et al. 2017): the variance of the energies does not grow with d."""

    def energies(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.mT / math.sqrt(query.shape[-1])

    def terms(self, query: Tensor, key_side: Tensor) -> BilinearTerms:
        return BilinearTerms(query, key_side, 1 / math.sqrt(query.shape[-1]))


class General(Score):
    """qᵀWk (Luong et al. 2015). `heads=` gives each head its own W."""

    def __init__(self, query_dim: int, key_dim: int, *, heads: int | None = None) -> None:
        super().__init__()
        for name, dim in (("query_dim", query_dim), ("key_dim", key_dim)):
            whole_number("General", name, dim, minimum=1)
        self.weight = nn.Parameter(torch.empty(*_per_head(heads), query_dim, key_dim))
        _init_uniform(self.weight, fan_in=key_dim)

    def energies(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ self.weight @ key.mT  # [..., T, Dq] [Dq, Dk] [..., Dk, S]

    def terms(self, query: Tensor, key_side: Tensor) -> BilinearTerms:
        return BilinearTerms(query @ self.weight, key_side, 1.0)

    def expects(self) -> tuple[int, int]:
        return self.weight.shape[-2], self.weight.shape[-1]

    @property
    def heads(self) -> int | None:
        return self.weight.shape[0] if self.weight.dim() == 3 else None


class Cosine(Score):
    """τ · qᵀk / (‖q‖‖k‖); a zero vector has energy 0 and gradient 0.

    With `learned=True`, τ > 0 is a parameter, one per head with `heads=`. This is the content addressing of a Neural
    Turing Machine (Graves et al. 2014), w = softmax(β · cos(k, M)): its key is our query, its memory rows are our keys,
    its key strength β is our τ.
    """

    def __init__(self, tau: float = 1.0, *, learned: bool = False, heads: int | None = None) -> None:
        super().__init__()
        self.start = positive("Cosine", "tau", tau)
        self.log_tau = nn.Parameter(torch.full(_per_head(heads), math.log(self.start))) if learned else None

    @property
    def tau(self) -> Tensor | float:
        """τ: a number, or if learned a tensor [] or [heads]."""
        return self.start if self.log_tau is None else self.log_tau.exp()

    def energies(self, query: Tensor, key: Tensor) -> Tensor:
        return self._times_tau(unit(query)) @ unit(key).mT

    def key_side(self, key: Tensor) -> Tensor:
        return unit(key)

    def terms(self, query: Tensor, key_side: Tensor) -> BilinearTerms:
        return BilinearTerms(self._times_tau(unit(query)), key_side, 1.0)

    def _times_tau(self, query: Tensor) -> Tensor:
        """Return τ · query."""
        tau = self.tau
        return query * (tau[..., None, None].to(query.dtype) if isinstance(tau, Tensor) else tau)

    @property
    def heads(self) -> int | None:
        return None if self.log_tau is None or not self.log_tau.dim() else self.log_tau.shape[0]

    def extra_repr(self) -> str:
        return f"tau={self.start}, learned={self.log_tau is not None}"


class Additive(Score):
    """vᵀ tanh(Wq + Uk) (Bahdanau et al. 2015). `bias=True` adds a bias inside the tanh; `heads=`: one set per head.

    `None` for a dim omits its projection: those states have `hidden` features already.
    """

    def __init__(
        self, query_dim: int | None, key_dim: int | None, hidden: int, *, bias: bool = False, heads: int | None = None
    ) -> None:
        super().__init__()
        for name, dim in (("query_dim", query_dim), ("key_dim", key_dim), ("hidden", hidden)):
            if dim is not None or name == "hidden":
                whole_number("Additive", name, dim, minimum=1)
        lead = _per_head(heads)
        self.query_weight = None if query_dim is None else nn.Parameter(torch.empty(*lead, hidden, query_dim))  # W
        self.key_weight = None if key_dim is None else nn.Parameter(torch.empty(*lead, hidden, key_dim))  # U
        self.vector = nn.Parameter(torch.empty(*lead, hidden))  # v
        self.bias = nn.Parameter(torch.zeros(*lead, hidden)) if bias else None
        for weight in (self.query_weight, self.key_weight, self.vector):
            if weight is not None:
                _init_uniform(weight, fan_in=weight.shape[-1])

    def energies(self, query: Tensor, key: Tensor) -> Tensor:
        q, k = self._query_side(query), self.key_side(key)  # [..., T, H], [..., S, H]
        pairs = torch.tanh(q[..., :, None, :] + k[..., None, :, :])  # [..., T, S, H]
        return (pairs * self.vector[..., None, None, :]).sum(-1)

    def key_side(self, key: Tensor) -> Tensor:
        return key if self.key_weight is None else key @ self.key_weight.mT

    def _query_side(self, query: Tensor) -> Tensor:
        """Return q' = Wq + bias."""
        side = query if self.query_weight is None else query @ self.query_weight.mT
        return side if self.bias is None else side + self.bias[..., None, :]

    def terms(self, query: Tensor, key_side: Tensor) -> AdditiveTerms:
        return AdditiveTerms(self._query_side(query), key_side, self.vector)

    def expects(self) -> tuple[int, int]:
        hidden = self.vector.shape[-1]
        query_weight, key_weight = self.query_weight, self.key_weight
        query_dim = hidden if query_weight is None else query_weight.shape[-1]
        return query_dim, hidden if key_weight is None else key_weight.shape[-1]

    @property
    def heads(self) -> int | None:
        return self.vector.shape[0] if self.vector.dim() == 2 else None


def terms_of(score: Score, query: Tensor, key_side: Tensor) -> Terms:
    """Return the terms of a score for queries [..., T, Dq] and k' [..., S, D], checked."""
    terms = score.terms(query, key_side)
    if not isinstance(terms, (BilinearTerms, AdditiveTerms)):
        got = f"got {type(terms).__name__}; a score of neither family leaves `terms` undefined"
        raise TypeError(f"score: {score.title}.terms: expected BilinearTerms or AdditiveTerms, {got}")
    q, k = terms.query, terms.key
    if q.size(-1) != k.size(-1) or q.size(-2) != query.size(-2) or k.size(-2) != key_side.size(-2):
        wanted = f"q' [..., {query.size(-2)}, D] and k' [..., {key_side.size(-2)}, D]"
        raise ValueError(f"score: {score.title}.terms: expected {wanted}, got {shape(q)} and {shape(k)}")
    return terms


class PrecomputedTerms(Score):
    """A score whose terms were computed before."""

    def __init__(self, terms: Terms, title: str) -> None:
        super().__init__()
        self._terms, self._title = terms, title

    @property
    def title(self) -> str:
        return self._title

    def energies(self, query: Tensor, key: Tensor) -> Tensor:
        return self._terms.energies()

    def terms(self, query: Tensor, key_side: Tensor) -> Terms:
        return self._terms


def unit(x: Tensor) -> Tensor:
    """Return x / ‖x‖ over the last dim, computed in float32 or better; 0 stays 0, with gradient 0."""
    precise = at_least_float32(x)
    squared = (precise * precise).sum(-1, keepdim=True)
    zero = squared == 0
    return (precise * torch.where(zero, 0, squared.masked_fill(zero, 1).rsqrt())).to(x.dtype)


def at_least_float32(x: Tensor) -> Tensor:
    """Return a tensor in half precision as float32, any other as it is."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _per_head(heads: int | None) -> tuple[int, ...]:
    """Return the leading dims of parameters: [heads], or none if all heads share them."""
    return () if heads is None else (whole_number("Score", "heads", heads, minimum=1),)


def _init_uniform(weight: Tensor, fan_in: int) -> None:
    """Initialize as `nn.Linear` does: uniform in ± 1 / √fan_in."""
    nn.init.uniform_(weight, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))
