"""Kernels that work tile by tile (`tile_attention.py`): for patterns without a stride, with one, and for unions."""

from __future__ import annotations

from torch import Tensor

from regard.core.kernels.cpu.parts import PatternLayout, layout_of
from regard.core.kernels.cpu.tile_access import TileSettings
from regard.core.kernels.cpu.tile_attention import attend
from regard.core.kernels.flat import FlatRows, fold
from regard.core.kernels.kernel import Kernel
from regard.core.local import LocalPredictive
from regard.core.normalizers import Entmax, Hard, Softmax
from regard.core.patterns import Pattern, PerHead
from regard.core.request import Request
from regard.core.result import Result


class Tiles(Kernel):
    """Blocks of queries against the spans of keys that they may attend to."""

    name = "tiles"
    regroups = False

    def refuse(self, request: Request) -> str | None:
        if not isinstance(request.normalizer, Entmax):
            return f"{type(request.normalizer).__name__} gives all the weight to one key"
        return unsuited(request)

    def run(self, request: Request) -> Result:
        assert isinstance(request.normalizer, Entmax)
        context, lse = solve(request, request.normalizer, regroup=self.regroups)
        return Result(context, lse=lse)

    def computed_pairs(self, request: Request) -> int:
        return pairs_in_tiles(request, self.regroups)


class Regrouped(Tiles):
    """Strides and dilations: positions are regrouped into residue classes, with tiles inside each class."""

    name = "regrouped"
    regroups = True
    takes_unions = False

    def refuse(self, request: Request) -> str | None:
        if (reason := super().refuse(request) or unregroupable(request)) is not None:
            return reason
        is_union = len(pattern_layout(request).terms) > 1
        if is_union != self.takes_unions:
            return "the pattern is a union" if is_union else "the pattern is not a union of strided and other parts"
        if is_union and not isinstance(request.normalizer, Softmax):
            return f"{type(request.normalizer).__name__} needs one threshold a row, parts would have one each"
        return None


class Union(Regrouped):
    """Unions of strided and other parts: each part is computed by itself, and they are merged by log-sum-exp."""

    name = "union"
    takes_unions = True


def unsuited(request: Request) -> str | None:
    """Return why no kernel that works tile by tile can compute the request; None if one can."""
    if isinstance(request.pattern, LocalPredictive):
        return "where to look depends on the query"
    if isinstance(request.pattern, PerHead):
        return "each head has a pattern of its own"
    if request.terms is None:
        return f"{request.score.title} is neither bilinear nor additive"
    return request.transform


def unregroupable(request: Request) -> str | None:
    """Return why positions cannot be regrouped into classes for this request; None if they can."""
    if all(term.step == 1 for term in pattern_layout(request).terms):
        return "the pattern has no stride"
    if request.bias is not None or request.allowed is not None:
        return "a bias or mask of pairs cannot be regrouped into classes"
    return None


def regroups(request: Request) -> bool:
    """Is the request's pattern computed in residue classes?"""
    mergeable = len(pattern_layout(request).terms) == 1 or isinstance(request.normalizer, (Softmax, Hard))
    return mergeable and unregroupable(request) is None


def pairs_in_tiles(request: Request, regroup: bool) -> int:
    """Return how many pairs the tiles hold. The layout is not cached: that of a million queries takes megabytes."""
    assert isinstance(request.pattern, Pattern)
    parts = PatternLayout(request.pattern, request.queries, request.keys, request.position).parts(regroup)
    return sum(part.step * tile.height * tile.width for part in parts for tile in part.all_tiles)


def solve(
    request: Request, normalizer: Entmax, value: Tensor | None = None, *, gumbel: bool = False, regroup: bool
) -> tuple[Tensor, Tensor | None]:
    """Return (context [..., T, Dv], lse [..., T] or None), differentiable; `gumbel` adds noise to the energies."""
    settings, (query, key, vector, bias) = prepare(request, normalizer, gumbel=gumbel, regroup=regroup)
    value = fold(request.value if value is None else value, request.leading)
    context, lse = attend(settings, query, key, value, vector, bias)
    return context, lse.view(*request.leading, request.queries) if isinstance(normalizer, Softmax) else None


def prepare(
    request: Request, normalizer: Entmax, *, gumbel: bool = False, regroup: bool
) -> tuple[TileSettings, tuple[Tensor, Tensor, Tensor | None, Tensor | None]]:
    """Return the request with its leading dims folded: (settings, (q', k', v or None, bias or None))."""
    terms, leading, layout = request.terms, request.leading, pattern_layout(request)
    assert terms is not None
    temperature = normalizer.temperature if isinstance(normalizer, Softmax) else 1.0
    scale, vector = terms.at_temperature(temperature)
    vector = None if vector is None else fold(vector[..., None, :], leading)[:, 0]
    bias = None if request.bias is None else FlatRows.fold(request.bias / temperature, leading, 2)
    settings = TileSettings(
        pattern=layout.pattern,
        parts=layout.parts(regroup),
        leading=leading,
        heads_inside=_heads_inside(request.query),
        normalizer=Softmax() if isinstance(normalizer, Softmax) else normalizer,
        scale=scale,
        position=request.position,
        keys=request.keys,
        visible=None if request.visible is None else FlatRows.fold(request.visible, leading, 1),
        allowed=None if request.allowed is None else FlatRows.fold(request.allowed, leading, 2),
        bias=bias,
        row_numbers=request.rows.reshape(-1),
        dropout=request.dropout,
        seed=request.seed,
        gumbel=1 / temperature if gumbel else 0.0,
        noise_seed=request.noise_seed,
    )
    bias_tensor = None if bias is None else bias.tensor
    return settings, (fold(terms.query, leading), fold(terms.key, leading), vector, bias_tensor)


def _heads_inside(query: Tensor) -> bool:
    """Is [..., heads, T, D] laid out in memory as [..., T, heads, D]?

    Then the context should be too: joining the heads copies nothing, and the joined tensor is the one that the backward
    pass saves.
    """
    return query.dim() > 2 and not query.is_contiguous() and query.transpose(-3, -2).is_contiguous()


def pattern_layout(request: Request) -> PatternLayout:
    """Return the layout of the request's pattern."""
    assert isinstance(request.pattern, Pattern)
    return layout_of(request.pattern, request.queries, request.keys, request.position)
