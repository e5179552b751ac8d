"""Attention pooling: a learned query attends to all states, as for text classification."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from regard.core import checks
from regard.core.attention import Attention
from regard.core.checks import whole_number
from regard.core.local import LocalPredictive
from regard.core.normalizers import Normalizer, Softmax
from regard.core.patterns import Full, Pattern
from regard.core.request import Lengths
from regard.core.result import Result, Top
from regard.core.scores import Additive, Score


class Pool(nn.Module):
    """context = Σ_j weight_j state_j,      weights = normalizer(score(u, states)) with a learned query u

    The score is additive unless another is given: vᵀ tanh(Wu + U state), as in hierarchical attention networks (Yang et
    al. 2016). With `queries=n` there are n learned queries, and results have a dim for them.
    """

    def __init__(
        self,
        dim: int,
        *,
        queries: int | None = None,
        score: Score | str | None = None,
        pattern: Pattern | LocalPredictive | str = Full(),  # noqa: B008, a frozen value
        normalizer: Normalizer | str = Softmax(),  # noqa: B008, a frozen value
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        whole_number("Pool", "dim", dim, minimum=1)
        if queries is not None:
            whole_number("Pool", "queries", queries, minimum=1)
        self.query = nn.Parameter(torch.empty(queries or 1, dim))
        nn.init.uniform_(self.query, -1 / math.sqrt(dim), 1 / math.sqrt(dim))
        self.one_query = queries is None
        self.attention = Attention(Additive(dim, dim, dim) if score is None else score, pattern, normalizer, dropout)

    def forward(
        self,
        states: Tensor,
        *,
        value: Tensor | None = None,
        lengths: Lengths | None = None,
        allowed: Tensor | None = None,
        weights: bool = False,
        top: int | None = None,
        generator: torch.Generator | None = None,
    ) -> Result:
        """Pool states [..., S, dim]; return context [..., dim], weights [..., S].

        `allowed`: bool, True = may be attended to, broadcasts to [..., S]; with `queries=n` to [..., n, S].
        """
        checks.states("states", states, self.query.shape[-1])
        if self.one_query and isinstance(allowed, Tensor) and allowed.dim():
            allowed = allowed[..., None, :]
        options = {"lengths": lengths, "allowed": allowed, "weights": weights, "top": top, "generator": generator}
        result: Result = self.attention(self.query.to(states.dtype), states, value, **options)
        return _without_query(result) if self.one_query else result


def _without_query(result: Result) -> Result:
    """Return the result without the dim of its one query."""

    def squeezed(x: Tensor | None, dim: int) -> Tensor | None:
        return None if x is None else x.squeeze(dim)

    return Result(
        context=result.context.squeeze(-2),
        weights=squeezed(result.weights, -2),
        top=result.top and Top(result.top.weights.squeeze(-2), result.top.positions.squeeze(-2)),
        chosen=squeezed(result.chosen, -1),
        log_probability=squeezed(result.log_probability, -1),
    )
