"""What hard attention takes of the keys that it chose: their values, and the energies behind the log-probabilities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.core.kernels.gpu import chosen_device as device
from regard.core.kernels.gpu.blocks import power
from regard.core.kernels.gpu.device import compile_ahead, launch
from regard.core.kernels.hard import at
from regard.runtime.device_guard import device_guard

ROWS = 16
"""queries that a program takes"""


def take(query: Tensor, key: Tensor, value: Tensor, chosen: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """query [G, T, D], key [G, S, D], value [G, S, F], chosen int64 [G, T] → (context [G, T, F], energy float32
    [G, T]), differentiable; 0 where nothing was chosen. What flows back to a key is summed up in float32, in whatever
    order it comes, unless torch is to be deterministic."""
    if torch.are_deterministic_algorithms_enabled():
        return at(value, chosen), (query.float() * at(key, chosen).float()).sum(-1) * scale
    with device_guard(query.device):
        found: tuple[Tensor, Tensor] = _Taken.apply(query, key, value, chosen, scale)  # type: ignore[no-untyped-call]
    return found


def prepare(query: Tensor, key: Tensor, value: Tensor, scale: float, trains_energy: bool) -> None:
    """Compile the kernels of a combination that is new. What flows back is the gradient of the context, and with
    `trains_energy` that of the energy too."""
    trains = torch.is_grad_enabled() and value.requires_grad
    widths = key.shape[-1], value.shape[-1]

    def run() -> None:
        q, k, v = (x[:1].contiguous() for x in (query, key, value))
        chosen = torch.zeros(q.shape[:2], dtype=torch.int64, device=q.device)
        context, energy = _take(q, k, v, chosen, scale)
        if trains:
            _give_back(q, k, v, chosen, context, energy if trains_energy else None, scale)

    combination = ("chosen", query.dtype, value.dtype, *widths, trains, trains_energy)
    compile_ahead(combination, query.device, run)


class _Taken(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, chosen: Tensor, scale: float
    ) -> tuple[Tensor, Tensor]:
        query, key, value, chosen = (x.contiguous() for x in (query, key, value, chosen))
        context, energy = _take(query, key, value, chosen, scale)
        ctx.scale = scale
        ctx.save_for_backward(query, key, value, chosen)
        ctx.set_materialize_grads(False)
        return context, energy

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, slopes: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        refuse_second_order()
        query, key, value, chosen = ctx.saved_tensors
        if not any(ctx.needs_input_grad[:2]):
            slopes = None
        if not ctx.needs_input_grad[2]:
            gradient = None
        found = _give_back(query, key, value, chosen, gradient, slopes, ctx.scale)
        pairs = zip(found, (query, key, value), strict=True)
        return *(None if x is None else x.to(states.dtype) for x, states in pairs), None, None


def _take(query: Tensor, key: Tensor, value: Tensor, chosen: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    context = value.new_empty(*chosen.shape, value.shape[-1])
    energy = query.new_empty(chosen.shape, dtype=torch.float32)
    if chosen.numel():
        launch(
            device.take, _grid(chosen), query, key, value, chosen, context, energy,
            *_sizes(chosen, key, value), scale, **_options(key, value),
        )  # fmt: skip
    return context, energy


def _give_back(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    chosen: Tensor,
    gradient: Tensor | None,
    slopes: Tensor | None,
    scale: float,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """∂context [G, T, F], ∂energy [G, T] → (∂query, ∂key, ∂value); None for what nothing flows back to"""
    by_query = torch.empty_like(query) if slopes is not None else None
    by_key = torch.zeros_like(key, dtype=torch.float32) if slopes is not None else None
    by_value = torch.zeros_like(value, dtype=torch.float32) if gradient is not None else None
    if chosen.numel():
        given = (chosen if x is None else x.contiguous() for x in (gradient, slopes))
        into = (chosen if x is None else x for x in (by_query, by_key, by_value))  # anything, where it is not asked
        launch(
            device.give_back, _grid(chosen), query, key, chosen, *given, *into, *_sizes(chosen, key, value), scale,
            ENERGY=slopes is not None, CONTEXT=gradient is not None, **_options(key, value),
        )  # fmt: skip
    return by_query, by_key, by_value


def _grid(chosen: Tensor) -> tuple[int]:
    return (-(-chosen.numel() // ROWS),)


def _sizes(chosen: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    return chosen.numel(), chosen.shape[1], key.shape[1], key.shape[2], value.shape[2]


def _options(key: Tensor, value: Tensor) -> dict[str, int]:
    return {"ROWS": ROWS, "FEATURES": power(key.shape[-1]), "VALUES": power(value.shape[-1])}
