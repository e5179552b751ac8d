"""A pattern per head: heads with the same pattern are computed together, by whichever kernel suits it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from regard.core.patterns import Pattern, PerHead
from regard.core.request import Request
from regard.core.result import Result, Top
from regard.core.scores import PrecomputedTerms
from regard.runtime.device_cache import device_cache


class Heads:
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
    joined = [head for group in heads for head in group]
    order = _head_index(tuple(np.argsort(joined).tolist()), results[0].context.device)
    tops = [result.top for result in results if result.top is not None]
    context = _join([result.context for result in results], order, 2)
    assert context is not None
    return Result(
        context,
        lse=_join([result.lse for result in results], order, 1),
        chosen=_join([result.chosen for result in results], order, 1),
        log_probability=_join([result.log_probability for result in results], order, 1),
        top=_join_tops(tops, order) if tops else None,
    )


def _join_tops(tops: list[Top], order: Tensor) -> Top:
    weights = _join([top.weights for top in tops], order, 2)
    positions = _join([top.positions for top in tops], order, 2)
    assert weights is not None and positions is not None
    return Top(weights, positions)


def by_pattern(request: Request) -> list[tuple[list[int], Request]]:
    """Return (heads, the request for these heads alone) for each distinct pattern."""
    assert isinstance(request.pattern, PerHead)
    heads: dict[Pattern, list[int]] = {}
    for number, pattern in enumerate(request.pattern.patterns):
        heads.setdefault(pattern, []).append(number)
    return [(numbers, _select_heads(request, numbers, pattern)) for pattern, numbers in heads.items()]


def _select_heads(request: Request, heads: list[int], pattern: Pattern) -> Request:
    index = _head_index(tuple(heads), request.query.device)
    terms = request.terms
    assert terms is not None

    def select(x: Tensor, trailing: int) -> Tensor:
        """Select the heads of a tensor with `trailing` dims after that of the heads; a broadcast dim stays as it is."""
        if x.dim() <= trailing or x.shape[-1 - trailing] == 1:
            return x
        return x.index_select(x.dim() - 1 - trailing, index)

    def select_given(x: Tensor | None, trailing: int) -> Tensor | None:
        return None if x is None else select(x, trailing)

    selected = terms.select(lambda x: select(x, 2), lambda x: select(x, 1))
    return replace(
        request,
        query=selected.query,
        key=selected.key,
        value=select(request.value, 2),
        score=PrecomputedTerms(selected, request.score.title),
        pattern=pattern,
        bias=select_given(request.bias, 2),
        visible=select_given(request.visible, 1),
        allowed=select_given(request.allowed, 2),
        lengths=select_given(request.lengths, 0),
        leading=torch.Size((*request.leading[:-1], len(heads))),
        row_numbers=request.rows.index_select(len(request.leading) - 1, index),
    )


def _join(pieces: list[Tensor | None], order: Tensor, trailing: int) -> Tensor | None:
    """Concatenate the results of all groups, in the order of the heads; None if one is missing."""
    if any(piece is None for piece in pieces):
        return None
    joined = torch.cat([piece for piece in pieces if piece is not None], dim=-1 - trailing)
    return joined.index_select(joined.dim() - 1 - trailing, order)


@device_cache(maxsize=256)
def _head_index(heads: tuple[int, ...], device: torch.device) -> Tensor:
    """Return the index of heads on the device, cached because copying it to a GPU makes Python wait."""
    return torch.tensor(heads, device=device)
