"""Attention by products along a pattern's blocks: windows, global positions, random blocks, whatever a pattern keeps.

Rows that see far more than their neighbours (global positions) are taken out and computed together, as on the CPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.flat import Flat
from regard.core.kernels.fused import dot_device as device
from regard.core.kernels.fused.blocks import Blocks, Lists, blocks_of, power
from regard.core.kernels.fused.jobs import Jobs, jobs_of
from regard.core.kernels.tile_attention import refuse_second_order
from regard.core.patterns import Pattern

HEIGHT, WIDTH = 128, 64
"""of a block"""
MOST_FEATURES = 128
LOG2 = math.log2(math.e)


@dataclass(frozen=True)
class Settings:
    """What has no gradient."""

    pattern: Pattern
    position: int
    visible: Flat | None
    """bool [G, S]"""
    scale: float
    precision: str
    """of products of float32: "tf32" or "tf32x3"; 16-bit numbers have only one way"""


def attend(settings: Settings, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """query [G, T, D], key [G, S, D], value [G, S, F] → (context [G, T, F], lse [G, T]), differentiable."""
    found: tuple[Tensor, Tensor] = _Dot.apply(settings, query, key, value)  # type: ignore[no-untyped-call]
    return found


@dataclass(frozen=True)
class Part:
    """Some queries, and what they meet."""

    rows: Tensor | None
    """int64: which they are; None: all"""
    blocks: Blocks
    by_query: Jobs
    by_key: Jobs


@lru_cache(maxsize=64)
def parts_of(pattern: Pattern, queries: int, keys: int, position: int, where: torch.device) -> tuple[Part, ...]:
    """All rows without what makes some of them heavy; then those, if there are any, whole."""
    heavy = tuple(row for row in pattern.heavy_rows if position <= row < position + queries)
    light = pattern.light if heavy else pattern
    parts = [_part(light, range(position, position + queries), None, keys, where)]
    if heavy:
        rows = torch.tensor([row - position for row in heavy], device=where)
        parts.append(_part(pattern, heavy, rows, keys, where))
    return tuple(parts)


def _part(
    pattern: Pattern, places: range | tuple[int, ...], rows: Tensor | None, keys: int, where: torch.device
) -> Part:
    blocks = blocks_of(pattern, places, keys, HEIGHT, WIDTH, where)
    return Part(rows, blocks, jobs_of(blocks.by_query, where), jobs_of(blocks.by_key, where))


class _Dot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, settings: Settings, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        query, key, value = (states.contiguous() for states in (query, key, value))
        parts = parts_of(settings.pattern, query.shape[1], key.shape[1], settings.position, query.device)
        context, lse = _Problem(settings, parts[0], query, key, value).forward()
        for part in parts[1:]:
            some, some_lse = _Problem(settings, part, query, key, value).forward()
            context[:, part.rows], lse[:, part.rows] = some, some_lse
        ctx.settings, ctx.parts = settings, parts
        ctx.save_for_backward(query, key, value, context, lse)
        return context, lse / LOG2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, lse_gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        refuse_second_order()
        query, key, value, context, lse = ctx.saved_tensors
        gradient = gradient.to(value.dtype).contiguous()
        delta = (gradient.float() * context.float()).sum(-1) - lse_gradient.float()
        # A row that sees nothing, or that another part computes, has weights 2^(e − ∞) = 0.
        lse = lse.masked_fill(lse == -torch.inf, torch.inf)
        light = lse.clone() if len(ctx.parts) > 1 else lse
        for part in ctx.parts[1:]:
            light[:, part.rows] = torch.inf
        first = _Problem(ctx.settings, ctx.parts[0], query, key, value)
        by_query, by_key, by_value = first.backward(gradient, light, delta)
        for part in ctx.parts[1:]:
            rows = part.rows
            problem = _Problem(ctx.settings, part, query, key, value)
            some, more_key, more_value = problem.backward(gradient[:, rows], lse[:, rows], delta[:, rows])
            by_query[:, rows] = some
            by_key, by_value = by_key + more_key, by_value + more_value
        return None, by_query, by_key, by_value


class _Problem:
    """One part of one problem."""

    def __init__(self, settings: Settings, part: Part, query: Tensor, key: Tensor, value: Tensor) -> None:
        self.settings, self.part = settings, part
        self.query = query if part.rows is None else query[:, part.rows]
        self.key, self.value = key, value
        self.rows, self.queries, self.features = self.query.shape
        self.keys, self.values = value.shape[1:]

    def forward(self) -> tuple[Tensor, Tensor]:
        """(context [G, T, F], lse [G, T] in units of log 2)"""
        jobs, lists = self.part.by_query, self.part.blocks.by_query
        context = self.value.new_empty(self.rows, self.queries, self.values)
        lse = self._new(self.rows, self.queries)
        part_context = self._new(self.rows, jobs.parts, HEIGHT, self.values)
        part_lse = self._new(self.rows, jobs.parts, HEIGHT)
        if jobs.count and self.rows:
            device.forward[(jobs.count, self.rows)](
                context=context,
                lse=lse,
                part_context=part_context,
                part_lse=part_lse,
                **self._common(jobs, lists),
            )
        for tile, first, last in jobs.cut:
            at = slice(tile * HEIGHT, min((tile + 1) * HEIGHT, self.queries))
            sums, some = part_lse[:, first:last], part_context[:, first:last]
            total = torch.logsumexp(sums / LOG2, 1) * LOG2  # [G, HEIGHT]
            share = torch.exp2(sums - total.masked_fill(total == -torch.inf, 0)[:, None])
            mixed = (share[..., None] * some).sum(1)
            context[:, at], lse[:, at] = (x[:, : at.stop - at.start] for x in (mixed.to(context.dtype), total))
        return context, lse

    def backward(self, gradient: Tensor, lse: Tensor, delta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(∂q, ∂k, ∂value)"""
        given = {"gradient": gradient, "lse": lse, "delta": delta, "back": self.settings.scale}
        by_query = self._query_gradient(given)
        return by_query, *self._key_gradient(given)

    def _query_gradient(self, given: dict[str, Any]) -> Tensor:
        jobs = self.part.by_query
        result = torch.empty_like(self.query)
        parts = self._new(self.rows, jobs.parts, HEIGHT, self.features)
        if jobs.count and self.rows:
            common = self._common(jobs, self.part.blocks.by_query)
            device.query_gradient[(jobs.count, self.rows)](result=result, part_result=parts, **given, **common)
        _together(result, parts, jobs, HEIGHT)
        return result

    def _key_gradient(self, given: dict[str, Any]) -> tuple[Tensor, Tensor]:
        jobs = self.part.by_key
        by_key, by_value = torch.empty_like(self.key), torch.empty_like(self.value)
        part_key = self._new(self.rows, jobs.parts, WIDTH, self.features)
        part_value = self._new(self.rows, jobs.parts, WIDTH, self.values)
        if jobs.count and self.rows:
            device.key_gradient[(jobs.count, self.rows)](
                result=by_key,
                value_result=by_value,
                part_result=part_key,
                part_value=part_value,
                **given,
                **self._common(jobs, self.part.blocks.by_key),
            )
        _together(by_key, part_key, jobs, WIDTH)
        _together(by_value, part_value, jobs, WIDTH)
        return by_key, by_value

    def _new(self, *shape: int) -> Tensor:
        return self.query.new_empty(shape, dtype=torch.float32)

    def _common(self, jobs: Jobs, lists: Lists) -> dict[str, Any]:
        visible = self.settings.visible
        shown = rows = jobs.tiles  # anything, where nothing is hidden
        if visible is not None:
            shown = visible.tensor.to(torch.uint8)
            rows = torch.arange(self.rows, device=shown.device) if visible.index is None else visible.index
        return {
            "query": self.query,
            "key": self.key,
            "value": self.value,
            "visible": shown,
            "visible_rows": rows,
            "tiles": jobs.tiles,
            "begins": jobs.begins,
            "middles": jobs.middles,
            "ends": jobs.ends,
            "slots": jobs.slots,
            "others": lists.others,
            "masks": lists.masks,
            "table": self.part.blocks.table,
            "queries": self.queries,
            "keys": self.keys,
            "features": self.features,
            "values": self.values,
            "parts": jobs.parts,
            "scale": self.settings.scale * LOG2,
            "VISIBLE": visible is not None,
            "HEIGHT": HEIGHT,
            "WIDTH": WIDTH,
            "FEATURES": power(self.features),
            "VALUES": power(self.values),
            "PRECISION": self.settings.precision,
        }


def _together(result: Tensor, parts: Tensor, jobs: Jobs, size: int) -> None:
    """The parts [G, parts, size, D] of tiles that were cut, summed up into the result [G, N, D]."""
    for tile, first, last in jobs.cut:
        at = slice(tile * size, min((tile + 1) * size, result.shape[1]))
        result[:, at] = parts[:, first:last].sum(1)[:, : at.stop - at.start].to(result.dtype)
