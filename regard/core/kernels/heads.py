"""A pattern per head: heads with the same pattern are computed together, by whichever kernel suits it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from regard.core.kernels.kernel import Kernel
from regard.core.patterns import Pattern, PerHead
from regard.core.request import Request
from regard.core.result import Result, Top
from regard.core.scores import PrecomputedTerms
from regard.runtime.device_cache import device_constant


class Heads(Kernel):
    """Split a request into groups of heads with the same pattern; `run` plans and computes each group."""

    name = "heads"

    def __init__(self, run: Callable[[Request], Result]) -> None:
        self._run = run

    def refuse(self, request: Request) -> str | None:
        if not isinstance(request.pattern, PerHead):
            return "all heads have the same pattern"
        if request.terms is None:
            return f"{request.score.title} is neither bilinear nor additive"
        return request.transform

    def run(self, request: Request) -> Result:
        groups = by_pattern(request)
        return join([self._run(group) for _, group in groups], [heads for heads, _ in groups])


def join(results: list[Result], heads: list[list[int]]) -> Result:
    """Join the results of groups of heads, in the order of the heads. Weights are not joined."""
    order = _head_index(np.argsort([head for group in heads for head in group]).tolist(), results[0].context.device)

    def joined(pieces: list[Tensor], dim: int) -> Tensor:
        return torch.cat(pieces, dim).index_select(dim, order)

    def joined_if_all(name: str) -> Tensor | None:
        pieces = [getattr(result, name) for result in results]
        return None if any(piece is None for piece in pieces) else joined(pieces, -2)

    tops = [result.top for result in results if result.top is not None]
    return Result(
        joined([result.context for result in results], -3),
        top=Top(joined([t.weights for t in tops], -3), joined([t.positions for t in tops], -3)) if tops else None,
        lse=joined_if_all("lse"),
        chosen=joined_if_all("chosen"),
        log_probability=joined_if_all("log_probability"),
    )


def by_pattern(request: Request) -> list[tuple[list[int], Request]]:
    """Return (heads, the request for these heads alone) for each distinct pattern."""
    assert isinstance(request.pattern, PerHead)
    heads: dict[Pattern, list[int]] = {}
    for number, pattern in enumerate(request.pattern.patterns):
        heads.setdefault(pattern, []).append(number)
    return [(numbers, _select_heads(request, numbers, pattern)) for pattern, numbers in heads.items()]


def _select_heads(request: Request, heads: list[int], pattern: Pattern) -> Request:
    index = _head_index(heads, request.query.device)

    def select(x: Tensor, dim: int) -> Tensor:
        """Select the heads, which are at `dim`, counted from the last; a broadcast dim stays as it is."""
        return x if x.dim() < -dim or x.shape[dim] == 1 else x.index_select(dim, index)

    def select_given(x: Tensor | None, dim: int) -> Tensor | None:
        return None if x is None else select(x, dim)

    assert request.terms is not None
    selected = request.terms.select(lambda x: select(x, -3), lambda x: select(x, -2))
    return replace(
        request,
        query=selected.query,
        key=selected.key,
        value=select(request.value, -3),
        score=PrecomputedTerms(selected, request.score.title),
        pattern=pattern,
        bias=select_given(request.bias, -3),
        visible=select_given(request.visible, -2),
        allowed=select_given(request.allowed, -3),
        lengths=select_given(request.lengths, -1),
        leading=torch.Size((*request.leading[:-1], len(heads))),
        row_numbers=request.rows.index_select(-1, index),
    )


def _head_index(heads: list[int], device: torch.device) -> Tensor:
    return device_constant(tuple(heads), torch.int64, device)
