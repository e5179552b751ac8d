"""Attention over several embeddings of a word, with weights that are computed for each word.

    x'_r = P_r x_r                                    each representation, in a common space
    α    = normalizer over r of uᵀ x'_r               a learned query u
    x    = Σ_r α_r x'_r

(dynamic meta-embeddings, Kiela et al. 2018). One embedding may be good at rare names and another at syntax; the weights
show which one is used for which word. The mask `known` marks which words an embedding has.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.core import checks
from regard.core.checks import whole_number
from regard.core.normalizers import Normalizer, Softmax
from regard.core.pool import Pool
from regard.core.result import Result
from regard.core.scores import Score


class Representations(nn.Module):
    """Combine R embeddings of widths `dims` into one of width `dim`, with weights per word.

    The score is the dot product with the learned query, as in the paper, unless another is given.
    """

    def __init__(
        self,
        dims: Sequence[int],
        dim: int,
        *,
        score: Score | str = "dot",
        normalizer: Normalizer | str = Softmax(),  # noqa: B008, a frozen value
    ) -> None:
        super().__init__()
        if not isinstance(dims, Sequence) or not dims:
            raise ValueError(f"Representations: dims: expected a width for each representation, got {dims!r}")
        for width in dims:
            whole_number("Representations", "dims", width, minimum=1)
        self.project = nn.ModuleList(nn.Linear(width, dim) for width in dims)
        self.pool = Pool(dim, score=score, normalizer=normalizer)

    def forward(
        self, representations: Sequence[Tensor], *, known: Tensor | None = None, weights: bool = False
    ) -> Result:
        """Combine R tensors [..., S, D_r] into context [..., S, dim], with weights [..., S, R].

        `known`: bool [..., S, R], False where a representation lacks a word; its values there are ignored. A word that
        all of them lack gets 0.
        """
        if len(representations) != len(self.project):
            raise ValueError(f"representations: expected {len(self.project)}, got {len(representations)}")
        for number, (states, project) in enumerate(zip(representations, self.project, strict=True)):
            checks.states(f"representations[{number}]", states, project.in_features)  # type: ignore[arg-type]
        if known is not None:
            known = checks.pairs("known", known, (*representations[0].shape[:-1], len(self.project)), floating=False)
            known = known.expand(*known.shape[:-1], len(self.project))
        projected = [
            project(states if known is None else torch.where(known[..., number, None], states, 0))
            for number, (states, project) in enumerate(zip(representations, self.project, strict=True))
        ]
        result: Result = self.pool(torch.stack(projected, -2), allowed=known, weights=weights)  # over [..., S, R, dim]
        return result
