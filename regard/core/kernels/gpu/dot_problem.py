"""The kernels of dot-product attention for one group of queries (query_groups.py), and how they are launched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.core.kernels.flat import FlatRows
from regard.core.kernels.gpu import blocks, dot_device
from regard.core.kernels.gpu.arrangement import Arrangement
from regard.core.kernels.gpu.blocks import Lists
from regard.core.kernels.gpu.jobs import Jobs
from regard.core.kernels.gpu.launch import launch, mask_arguments, shared_memory
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
    visible: FlatRows | None  # bool [G, S]
    scale: float
    precision: str  # of float32 products: "tf32" or "tf32x3"; 16-bit products have no such choice
    noise: Noise | None = None  # noise that is added to the energies


@dataclass(frozen=True)
class Noise:
    """The Gumbel noise of runtime/noise.py."""

    states: Tensor  # int32 [G]: the hash of seed and row
    scale: float = 1.0  # the factor by which the noise is multiplied


class DotBackwardInputs(NamedTuple):
    """The inputs of the backward pass for each query, in the order in which the kernels take them."""

    gradient: Tensor  # ∂c [G, T, F]
    lse: Tensor
    delta: Tensor

    def of(self, rows: Tensor) -> DotBackwardInputs:
        """Select queries."""
        return DotBackwardInputs(*(each[:, rows] for each in self))

    def arranged(self, order: Arrangement) -> DotBackwardInputs:
        """Sort into the order of a term; padding gets an lse of ∞, so that its weights are 0."""
        lse = order.query_order(self.lse, torch.inf)
        return DotBackwardInputs(order.query_order(self.gradient), lse, order.query_order(self.delta))

    def without(self, rows: Tensor) -> DotBackwardInputs:
        """Set the weights of these queries to 0."""
        return self._replace(lse=self.lse.index_fill(1, rows, torch.inf))


class DotProblem:
    """A group of queries of one term. `positions` are those of queries and keys, for noise and choices. With
    `in_float32` the results are float32."""

    def __init__(
        self, settings: DotSettings, group: QueryGroup, query: Tensor, key: Tensor, value: Tensor,
        positions: tuple[Tensor, Tensor] | None, in_float32: bool,
    ) -> None:  # fmt: skip
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
        jobs = self.group.by_query
        context = self._empty_result(self.value, self.rows, self.queries, self.values)
        lse = self._empty_float32(self.rows, self.queries)
        part_context = self._empty_float32(self.rows, jobs.parts, blocks.HEIGHT, self.values)
        part_lse = self._empty_float32(self.rows, jobs.parts, blocks.HEIGHT)
        self._launch(dot_device.forward, jobs, self.group.blocks.by_query, context, lse, part_context, part_lse)
        if jobs.split is not None:
            jobs.split.mix(part_context, part_lse, context, lse)
        return context, lse

    def query_gradient(self, inputs: DotBackwardInputs) -> Tensor:
        """Return ∂q [G, T, D]."""
        jobs, scale = self.group.by_query, self.settings.scale
        result = self._empty_result(self.query, *self.query.shape)
        parts = self._empty_float32(self.rows, jobs.parts, blocks.HEIGHT, self.features)
        self._launch(dot_device.query_gradient, jobs, self.group.blocks.by_query, *inputs, result, parts, scale)
        if jobs.split is not None:
            jobs.split.add(parts, result)
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
        lists, masks = heavy_problem.group.blocks.by_key, heavy_problem.group.masks
        _, heavy_positions, _ = heavy_problem.noise_arguments
        self._launch(
            dot_device.key_gradient, jobs, self.group.blocks.by_key,
            *inputs, grad_key, grad_value, part_key, part_value, self.settings.scale,
            heavy_problem.query, *heavy_inputs, lists.starts, lists.others, lists.masks, masks, heavy_positions,
            heavy_problem.queries, jobs.leads, HEAVY=heavy is not None,
        )  # fmt: skip
        if jobs.split is not None:
            jobs.split.add(part_key, grad_key)
            jobs.split.add(part_value, grad_value)
        return grad_key, grad_value

    def _empty_result(self, states: Tensor, *shape: int) -> Tensor:
        return states.new_empty(shape, dtype=torch.float32 if self._in_float32 else states.dtype)

    def _empty_float32(self, *shape: int) -> Tensor:
        return self.query.new_empty(shape, dtype=torch.float32)

    def _launch(self, kernel: Any, jobs: Jobs, lists: Lists, *arguments: Any, **options: Any) -> None:
        """Launch a kernel with its own arguments, between those that all kernels have."""
        noise, precision = self.settings.noise, self.settings.precision
        shared = shared_memory(self.query.device)
        launch(
            kernel, (jobs.count, self.rows), self.query, self.key, self.value, *arguments,
            *self.block_arguments(jobs, lists),
            self.values, self.settings.scale * LOG2, 0.0 if noise is None else noise.scale * LOG2,
            FEATURES=tile_width(self.features), VALUES=tile_width(self.values),
            num_stages=stages(self.value.dtype, self.features, self.values, precision, shared),
            num_warps=warps(self.value.dtype, self.features, self.values, noise is not None),
            **self.block_options, **options,
        )  # fmt: skip

    def block_arguments(self, jobs: Jobs, lists: Lists) -> tuple[Any, ...]:
        """Return the arguments of a kernel that loops over blocks."""
        visible = mask_arguments(self.settings.visible, self.rows, jobs.tiles)
        sizes = self.queries, self.keys, self.features, jobs.parts
        return *visible, *jobs.ranges, lists.others, lists.masks, self.group.masks, *sizes, *self.noise_arguments

    @property
    def noise_arguments(self) -> tuple[Tensor, Tensor, Tensor]:
        """The noise states and the positions of queries and keys; placeholders where no kernel reads them."""
        noise, (query_positions, key_positions) = self.settings.noise, self.positions or (self.group.masks,) * 2
        return query_positions if noise is None else noise.states, query_positions, key_positions

    @property
    def block_options(self) -> dict[str, Any]:
        """The constants of a kernel that loops over blocks."""
        masks = {"VISIBLE": self.settings.visible is not None, "INTERVALS": self.group.intervals}
        loops = {"NOISE": self.settings.noise is not None, "ONE_LOOP": self.one_loop}
        return {**masks, **loops, "HEIGHT": blocks.HEIGHT, "WIDTH": blocks.WIDTH, "PRECISION": self.settings.precision}

    @property
    def one_loop(self) -> bool:
        """Should one loop take the blocks with and without a mask? Yes if applying a mask is little of the work."""
        exact = self.value.dtype is torch.float32 and self.settings.precision != "tf32"
        return exact or self.settings.noise is not None
