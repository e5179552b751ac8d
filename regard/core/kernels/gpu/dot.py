"""Attention by products along a pattern's blocks: windows, global positions, random blocks, whatever a pattern keeps.

Queries that see far more than their neighbours (global positions) are taken out and computed together, as on the CPU;
keys meet both kinds in one pass. Strides and dilations of a pattern are terms of their own, each in its own order of
positions (arrangement.py); terms are merged by log-sum-exp, and going back each gets what was merged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.core.kernels.flat import Flat
from regard.core.kernels.gpu import dot_device as device
from regard.core.kernels.gpu.arrangement import Arrangement, arrangements_of, merged
from regard.core.kernels.gpu.blocks import Blocks, Lists, blocks_of
from regard.core.kernels.gpu.delta import delta_of
from regard.core.kernels.gpu.device import compile_ahead, launch, shared_memory
from regard.core.kernels.gpu.jobs import Jobs, jobs_of
from regard.core.kernels.gpu.tile_size import stages, tile_width, warps
from regard.core.patterns import Pattern
from regard.runtime.device_cache import kept
from regard.runtime.device_guard import device_guard

HEIGHT, WIDTH = 64, 64
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
    noise: Noise | None = None
    """that is added to the energies"""


@dataclass(frozen=True)
class Noise:
    """Gumbel noise of core/noise.py."""

    states: Tensor
    """int32 [G]: seed and row, mixed"""
    share: float = 1.0
    """of it that is added"""


def attend(settings: Settings, query: Tensor, key: Tensor, value: Tensor, trains: bool = True) -> tuple[Tensor, Tensor]:
    """query [G, T, D], key [G, S, D], value [G, S, F] → (context [G, T, F], lse [G, T]), differentiable. Without
    `trains` the kernels of the backward pass are not compiled before they are launched."""
    prepare(settings, query, key, value, trains)
    with device_guard(query.device):
        found: tuple[Tensor, Tensor] = _Dot.apply(settings, query, key, value)  # type: ignore[no-untyped-call]
    return found


def prepare(settings: Settings, query: Tensor, key: Tensor, value: Tensor, trains: bool = True) -> None:
    """Compile all kernels of a combination that is new, with `trains` those of its backward pass too, if there can be
    one."""
    trains = trains and torch.is_grad_enabled() and any(states.requires_grad for states in (query, key, value))
    kinds = settings.visible is None, settings.noise is None, settings.precision, trains
    widths = query.shape[-1], value.shape[-1], query.shape[1] == 0  # an empty problem launches nothing
    compile_ahead(
        ("dot", settings.pattern, query.dtype, *widths, *kinds),
        query.device,
        lambda: _launched(settings, query, key, value, trains),
    )


def _launched(settings: Settings, query: Tensor, key: Tensor, value: Tensor, backward: bool) -> None:
    """Launch everything once, forward and backward, for the first row of the batch."""
    query, key, value = (states[:1].contiguous() for states in (query, key, value))
    for term in _terms(settings, query, key, value):
        context, lse = term.forward()
        if backward:
            gradient = value.new_empty(context.shape)
            term.backward(_Back(gradient, lse, delta_of(gradient, gradient, lse)))


@dataclass(frozen=True)
class Part:
    """Some queries, and what they meet."""

    rows: Tensor | None
    """int64: which they are; None: all"""
    blocks: Blocks
    masks: Tensor
    """where the keys begin that a query sees, and where they end, int32 [masks, 2, HEIGHT]; or as in `Blocks`"""
    intervals: bool
    by_query: Jobs
    by_key: Jobs


@kept(most=256)
def parts_of(pattern: Pattern, queries: int, keys: int, position: int, where: torch.device) -> tuple[Part, Part | None]:
    """All queries without what makes some of them heavy; then those, if there are any, with all that they see."""
    heavy = tuple(row for row in pattern.heavy_rows if position <= row < position + queries)
    light = pattern.light if heavy else pattern
    blocks = [blocks_of(light, range(position, position + queries), keys, HEIGHT, WIDTH, where)]
    rows: list[Tensor | None] = [None]
    if heavy:
        blocks.append(blocks_of(pattern, heavy, keys, HEIGHT, WIDTH, where))
        rows.append(torch.tensor([row - position for row in heavy], device=where))
    # Both have masks of one form, so that one compiled kernel serves both.
    intervals = [_intervals(each.table) for each in blocks]
    first, *others = (
        _part(each, None if None in intervals else masks, some)
        for each, masks, some in zip(blocks, intervals, rows, strict=True)
    )
    return first, others[0] if others else None


def _part(blocks: Blocks, intervals: Tensor | None, rows: Tensor | None) -> Part:
    where = blocks.table.device
    jobs = jobs_of(blocks.by_query, HEIGHT, where), jobs_of(blocks.by_key, WIDTH, where)
    return Part(rows, blocks, blocks.table if intervals is None else intervals, intervals is not None, *jobs)


def _intervals(table: Tensor) -> Tensor | None:
    """Masks int64 [n, HEIGHT] as stretches of keys, int32 [n, 2, HEIGHT], if each is one: comparing is cheaper than
    picking bits."""
    j = torch.arange(WIDTH, device=table.device)
    seen = (table[..., None] >> j) & 1 != 0  # [n, HEIGHT, WIDTH]
    low = torch.where(seen, j, WIDTH).amin(-1)
    high = torch.where(seen, j + 1, 0).amax(-1)
    if not bool((seen == (j >= low[..., None]) & (j < high[..., None])).all()):
        return None
    return torch.stack([low, high], 1).to(torch.int32)


class _Dot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, settings: Settings, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        query, key, value = (states.contiguous() for states in (query, key, value))
        found = [term.forward() for term in _terms(settings, query, key, value)]
        context, lse = found[0]
        if len(found) > 1:
            context, total = merged([(some, sums / LOG2) for some, sums in found])
            lse = total * LOG2
        context = context.to(value.dtype)
        ctx.settings = settings
        ctx.save_for_backward(query, key, value, context, lse)
        return context, lse / LOG2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, lse_gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        refuse_second_order()
        query, key, value, context, lse = ctx.saved_tensors
        gradient = gradient.to(value.dtype).contiguous()
        # A query that sees nothing has weights 2^(e − ∞) = 0.
        back = _Back(gradient, lse.masked_fill(lse == -torch.inf, torch.inf), delta_of(gradient, context, lse_gradient))
        total: tuple[Tensor, ...] = ()
        for term in _terms(ctx.settings, query, key, value):
            found = term.backward(back)
            total = tuple(a.add_(b) for a, b in zip(total, found, strict=True)) if total else found
        return None, *(x.to(states.dtype) for x, states in zip(total, (query, key, value), strict=True))


def _terms(settings: Settings, query: Tensor, key: Tensor, value: Tensor) -> list[_Term]:
    arrangements = arrangements_of(settings.pattern, query.shape[1], key.shape[1], settings.position)
    exact = len(arrangements) > 1  # sums of several are kept in float32
    return [_Term(settings, arranged, query, key, value, exact) for arranged in arrangements]


class _Term:
    """One term of a problem. What goes in and what comes out are in the order of positions."""

    def __init__(
        self, settings: Settings, arranged: Arrangement, query: Tensor, key: Tensor, value: Tensor, exact: bool
    ) -> None:
        self._arranged = arranged
        inside = replace(settings, visible=arranged.visible_order(settings.visible))
        states = arranged.query_order(query), arranged.key_order(key), arranged.key_order(value)
        sizes = states[0].shape[1], states[1].shape[1]
        light, heavy = parts_of(arranged.pattern, *sizes, arranged.position, query.device)
        places = None
        if settings.noise is not None:
            places = arranged.query_places(query.device), arranged.key_places(query.device)
        self._light = _Problem(inside, light, *states, places, exact)
        self._heavy = None if heavy is None else _Problem(inside, heavy, *states, places, exact)

    def forward(self) -> tuple[Tensor, Tensor]:
        context, lse = self._light.forward()
        if self._heavy is not None:
            rows = self._heavy.part.rows
            context[:, rows], lse[:, rows] = self._heavy.forward()
        return self._arranged.as_queries(context), self._arranged.as_queries(lse)

    def backward(self, given: _Back) -> tuple[Tensor, Tensor, Tensor]:
        """(∂q, ∂k, ∂value)"""
        back = given.arranged(self._arranged)
        if self._heavy is None:
            by_query, apart = self._light.query_gradient(back), None
        else:
            rows = self._heavy.part.rows
            assert rows is not None
            apart, back = (self._heavy, back.of(rows)), back.without(rows)
            by_query = self._light.query_gradient(back)
            by_query[:, rows] = self._heavy.query_gradient(apart[1])
        by_key, by_value = self._key_gradient(back, apart)
        arranged = self._arranged
        return arranged.as_queries(by_query), arranged.as_keys(by_key), arranged.as_keys(by_value)

    def _key_gradient(self, back: _Back, apart: tuple[_Problem, _Back] | None) -> tuple[Tensor, Tensor]:
        """(∂k, ∂value) of the light queries and of those that stand apart: by one kernel, or, where that would take
        long to compile, one after the other by the same smaller one"""
        if apart is None or not self._light.one_loop:
            return self._light.key_gradient(back, apart)
        heavy, heavy_back = apart
        results = self._light.key_gradient(back), heavy.key_gradient(heavy_back)
        by_key, by_value = (light.add_(more) for light, more in zip(*results, strict=True))
        return by_key, by_value


@dataclass(frozen=True)
class _Back:
    """What comes back to queries."""

    gradient: Tensor
    """∂c [G, T, F]"""
    lse: Tensor
    delta: Tensor

    def of(self, rows: Tensor) -> _Back:
        return _Back(self.gradient[:, rows], self.lse[:, rows], self.delta[:, rows])

    def arranged(self, order: Arrangement) -> _Back:
        """Where there is no query, nobody looks."""
        lse = order.query_order(self.lse, torch.inf)
        return _Back(order.query_order(self.gradient), lse, order.query_order(self.delta))

    def without(self, rows: Tensor) -> _Back:
        """So that these queries look nowhere."""
        return _Back(self.gradient, self.lse.index_fill(1, rows, torch.inf), self.delta)


class _Problem:
    """Some queries of one term. `places`: positions of queries and keys, for noise; `exact`: results in float32."""

    def __init__(
        self,
        settings: Settings,
        part: Part,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        places: tuple[Tensor, Tensor] | None,
        exact: bool,
    ) -> None:
        self.settings, self.part, self._exact = settings, part, exact
        self.query = query if part.rows is None else query[:, part.rows]
        self.key, self.value = key, value
        self.places = places if places is None or part.rows is None else (places[0][part.rows], places[1])
        self.rows, self.queries, self.features = self.query.shape
        self.keys, self.values = value.shape[1:]

    def forward(self) -> tuple[Tensor, Tensor]:
        """(context [G, T, F], lse [G, T] in units of log 2)"""
        jobs, lists = self.part.by_query, self.part.blocks.by_query
        context = self._like(self.value, self.rows, self.queries, self.values)
        lse = self._new(self.rows, self.queries)
        part_context = self._new(self.rows, jobs.parts, HEIGHT, self.values)
        part_lse = self._new(self.rows, jobs.parts, HEIGHT)
        if jobs.count and self.rows:
            launch(
                device.forward,
                (jobs.count, self.rows),
                context=context,
                lse=lse,
                part_context=part_context,
                part_lse=part_lse,
                **self._common(jobs, lists),
            )
            if jobs.cut is not None:
                jobs.cut.mix(part_context, part_lse, context, lse)
        return context, lse

    def query_gradient(self, back: _Back) -> Tensor:
        jobs = self.part.by_query
        result = self._like(self.query, *self.query.shape)
        parts = self._new(self.rows, jobs.parts, HEIGHT, self.features)
        if jobs.count and self.rows:
            launch(
                device.query_gradient,
                (jobs.count, self.rows),
                result=result,
                part_result=parts,
                back=self.settings.scale,
                **vars(back),
                **self._common(jobs, self.part.blocks.by_query),
            )
            if jobs.cut is not None:
                jobs.cut.add(parts, result)
        return result

    def key_gradient(self, back: _Back, apart: tuple[_Problem, _Back] | None = None) -> tuple[Tensor, Tensor]:
        """(∂k, ∂value), with what comes from queries that stand apart"""
        jobs = self.part.by_key
        by_key, by_value = (self._like(states, *states.shape) for states in (self.key, self.value))
        part_key = self._new(self.rows, jobs.parts, WIDTH, self.features)
        part_value = self._new(self.rows, jobs.parts, WIDTH, self.values)
        others, others_back = apart or (self, back)  # anything, where there are none
        lists = others.part.blocks.by_key
        if jobs.count and self.rows:
            launch(
                device.key_gradient,
                (jobs.count, self.rows),
                result=by_key,
                value_result=by_value,
                part_result=part_key,
                part_value=part_value,
                back=self.settings.scale,
                leads=jobs.leads,
                heavy_query=others.query,
                heavy_starts=lists.starts,
                heavy_others=lists.others,
                heavy_masks=lists.masks,
                heavy_table=others.part.masks,
                heavy_queries=others.queries,
                heavy_places=others.noise["places"],
                HEAVY=apart is not None,
                **vars(back),
                **{f"heavy_{name}": tensor for name, tensor in vars(others_back).items()},
                **self._common(jobs, self.part.blocks.by_key),
            )
            if jobs.cut is not None:
                jobs.cut.add(part_key, by_key)
                jobs.cut.add(part_value, by_value)
        return by_key, by_value

    def _like(self, states: Tensor, *shape: int) -> Tensor:
        return states.new_empty(shape, dtype=torch.float32 if self._exact else states.dtype)

    def _new(self, *shape: int) -> Tensor:
        return self.query.new_empty(shape, dtype=torch.float32)

    @property
    def noise(self) -> dict[str, Any]:
        """Anything, where there is none."""
        given = self.settings.noise
        if given is None or self.places is None:
            nothing = self.part.masks
            return {"states": nothing, "places": nothing, "key_places": nothing, "share": 0.0, "NOISE": False}
        places = {"places": self.places[0], "key_places": self.places[1]}
        return {"states": given.states, **places, "share": given.share * LOG2, "NOISE": True}

    def _common(self, jobs: Jobs, lists: Lists) -> dict[str, Any]:
        visible = self.settings.visible
        shown = rows = jobs.tiles  # anything, where nothing is hidden
        if visible is not None:
            shown, rows = visible.tensor.to(torch.uint8), visible.numbers(self.rows)
        return {
            **self.noise,
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
            "table": self.part.masks,
            "queries": self.queries,
            "keys": self.keys,
            "features": self.features,
            "values": self.values,
            "parts": jobs.parts,
            "scale": self.settings.scale * LOG2,
            "VISIBLE": visible is not None,
            "INTERVALS": self.part.intervals,
            "HEIGHT": HEIGHT,
            "WIDTH": WIDTH,
            "FEATURES": tile_width(self.features),
            "VALUES": tile_width(self.values),
            "ONE_LOOP": self.one_loop,
            "PRECISION": self.settings.precision,
            "num_stages": self._stages,
            "num_warps": warps(self.value.dtype, self.features, self.values),
        }

    @property
    def one_loop(self) -> bool:
        return one_loop(self.settings, self.value.dtype)

    @property
    def _stages(self) -> int:
        precision, where = self.settings.precision, self.query.device
        return stages(self.value.dtype, self.features, self.values, precision, shared_memory(where))


def one_loop(settings: Settings, dtype: torch.dtype) -> bool:
    """Is a block's mask little beside all else that is computed for it? Then one loop takes blocks with and without."""
    return settings.noise is not None or (dtype is torch.float32 and settings.precision != "tf32")
