"""The kernels of dot-product attention for one group of queries (query_groups.py), and how they are launched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.flat import FlatRows
from regard.core.kernels.gpu import blocks
from regard.core.kernels.gpu import dot_device as device
from regard.core.kernels.gpu.arrangement import Arrangement
from regard.core.kernels.gpu.blocks import Lists
from regard.core.kernels.gpu.device import launch, shared_memory
from regard.core.kernels.gpu.jobs import Jobs
from regard.core.kernels.gpu.query_groups import QueryGroup
from regard.core.kernels.gpu.tile_size import stages, tile_width, warps
from regard.core.patterns import Pattern

MAX_FEATURES = 128
LOG2 = math.log2(math.e)


@dataclass(frozen=True)
class DotSettings:
    """Everything that a call needs and that has no gradient."""

    pattern: Pattern
    position: int
    visible: FlatRows | None
    """bool [G, S]"""
    scale: float
    precision: str
    """of float32 products: "tf32" or "tf32x3"; 16-bit products have no such choice"""
    noise: Noise | None = None
    """noise that is added to the energies"""


@dataclass(frozen=True)
class Noise:
    """The Gumbel noise of runtime/noise.py."""

    states: Tensor
    """int32 [G]: the hash of seed and row"""
    scale: float = 1.0
    """the factor by which the noise is multiplied"""


@dataclass(frozen=True)
class DotBackwardInputs:
    """The inputs of the backward pass for each query. The fields are arguments of the kernels, by these names."""

    gradient: Tensor
    """∂c [G, T, F]"""
    lse: Tensor
    delta: Tensor

    def of(self, rows: Tensor) -> DotBackwardInputs:
        """Select queries."""
        return DotBackwardInputs(self.gradient[:, rows], self.lse[:, rows], self.delta[:, rows])

    def arranged(self, order: Arrangement) -> DotBackwardInputs:
        """Sort into the order of a term; padding gets an lse of ∞, so that its weights are 0."""
        lse = order.query_order(self.lse, torch.inf)
        return DotBackwardInputs(order.query_order(self.gradient), lse, order.query_order(self.delta))

    def without(self, rows: Tensor) -> DotBackwardInputs:
        """Set the weights of these queries to 0."""
        return DotBackwardInputs(self.gradient, self.lse.index_fill(1, rows, torch.inf), self.delta)


class DotProblem:
    """A group of queries of one term.

    `positions` are those of queries and keys, for noise. With `in_float32` the results are float32.
    """

    def __init__(
        self,
        settings: DotSettings,
        group: QueryGroup,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        positions: tuple[Tensor, Tensor] | None,
        in_float32: bool,
    ) -> None:
        self.settings, self.group, self._in_float32 = settings, group, in_float32
        self.query = query if group.rows is None else query[:, group.rows]
        self.key, self.value = key, value
        self.positions = positions
        if positions is not None and group.rows is not None:
            self.positions = positions[0][group.rows], positions[1]
        self.rows, self.queries, self.features = self.query.shape
        self.keys, self.values = value.shape[1:]

    def forward(self) -> tuple[Tensor, Tensor]:
        """Return (context [G, T, F], lse [G, T] in units of log 2)."""
        jobs, lists = self.group.by_query, self.group.blocks.by_query
        context = self._empty_result(self.value, self.rows, self.queries, self.values)
        lse = self._empty_float32(self.rows, self.queries)
        part_context = self._empty_float32(self.rows, jobs.parts, blocks.HEIGHT, self.values)
        part_lse = self._empty_float32(self.rows, jobs.parts, blocks.HEIGHT)
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

    def query_gradient(self, inputs: DotBackwardInputs) -> Tensor:
        """Return ∂q [G, T, D]."""
        jobs = self.group.by_query
        result = self._empty_result(self.query, *self.query.shape)
        parts = self._empty_float32(self.rows, jobs.parts, blocks.HEIGHT, self.features)
        if jobs.count and self.rows:
            launch(
                device.query_gradient,
                (jobs.count, self.rows),
                result=result,
                part_result=parts,
                gradient_scale=self.settings.scale,
                **vars(inputs),
                **self._common(jobs, self.group.blocks.by_query),
            )
            if jobs.cut is not None:
                jobs.cut.add(parts, result)
        return result

    def key_gradient(
        self, inputs: DotBackwardInputs, heavy: tuple[DotProblem, DotBackwardInputs] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return (∂k, ∂value), with the contribution of the heavy queries if they are given."""
        jobs = self.group.by_key
        grad_key, grad_value = (self._empty_result(states, *states.shape) for states in (self.key, self.value))
        part_key = self._empty_float32(self.rows, jobs.parts, blocks.WIDTH, self.features)
        part_value = self._empty_float32(self.rows, jobs.parts, blocks.WIDTH, self.values)
        heavy_problem, heavy_inputs = heavy or (self, inputs)  # placeholders if there are no heavy queries
        lists = heavy_problem.group.blocks.by_key
        if jobs.count and self.rows:
            launch(
                device.key_gradient,
                (jobs.count, self.rows),
                result=grad_key,
                value_result=grad_value,
                part_result=part_key,
                part_value=part_value,
                gradient_scale=self.settings.scale,
                leads=jobs.leads,
                heavy_query=heavy_problem.query,
                heavy_starts=lists.starts,
                heavy_others=lists.others,
                heavy_masks=lists.masks,
                heavy_table=heavy_problem.group.masks,
                heavy_queries=heavy_problem.queries,
                heavy_positions=heavy_problem.noise["query_positions"],
                HEAVY=heavy is not None,
                **vars(inputs),
                **{f"heavy_{name}": tensor for name, tensor in vars(heavy_inputs).items()},
                **self._common(jobs, self.group.blocks.by_key),
            )
            if jobs.cut is not None:
                jobs.cut.add(part_key, grad_key)
                jobs.cut.add(part_value, grad_value)
        return grad_key, grad_value

    def _empty_result(self, states: Tensor, *shape: int) -> Tensor:
        return states.new_empty(shape, dtype=torch.float32 if self._in_float32 else states.dtype)

    def _empty_float32(self, *shape: int) -> Tensor:
        return self.query.new_empty(shape, dtype=torch.float32)

    @property
    def noise(self) -> dict[str, Any]:
        """The kernels' arguments for noise; without noise the tensors are placeholders that no kernel reads."""
        noise = self.settings.noise
        if noise is None or self.positions is None:
            unused = self.group.masks
            tensors = {"states": unused, "query_positions": unused, "key_positions": unused}
            return {**tensors, "noise_scale": 0.0, "NOISE": False}
        positions = {"query_positions": self.positions[0], "key_positions": self.positions[1]}
        return {"states": noise.states, **positions, "noise_scale": noise.scale * LOG2, "NOISE": True}

    def _common(self, jobs: Jobs, lists: Lists) -> dict[str, Any]:
        """Return the arguments that all kernels have."""
        visible = self.settings.visible
        visible_keys = visible_rows = jobs.tiles  # placeholders if no key is hidden
        if visible is not None:
            visible_keys, visible_rows = visible.tensor.to(torch.uint8), visible.numbers(self.rows)
        return {
            **self.noise,
            "query": self.query,
            "key": self.key,
            "value": self.value,
            "visible": visible_keys,
            "visible_rows": visible_rows,
            "tiles": jobs.tiles,
            "begins": jobs.begins,
            "middles": jobs.middles,
            "ends": jobs.ends,
            "slots": jobs.slots,
            "others": lists.others,
            "masks": lists.masks,
            "table": self.group.masks,
            "queries": self.queries,
            "keys": self.keys,
            "features": self.features,
            "values": self.values,
            "parts": jobs.parts,
            "scale": self.settings.scale * LOG2,
            "VISIBLE": visible is not None,
            "INTERVALS": self.group.intervals,
            "HEIGHT": blocks.HEIGHT,
            "WIDTH": blocks.WIDTH,
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


def one_loop(settings: DotSettings, dtype: torch.dtype) -> bool:
    """Should one loop take the blocks with and without a mask? Yes if applying a mask is a small part of the work."""
    return settings.noise is not None or (dtype is torch.float32 and settings.precision != "tf32")
