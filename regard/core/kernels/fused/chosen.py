"""What hard attention takes of the keys that it chose: their values, and the energies behind the log-probabilities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.fused import chosen_device as device
from regard.core.kernels.fused.blocks import power
from regard.core.kernels.fused.device import launch, on
from regard.core.kernels.hard import at
from regard.core.kernels.tile_attention import refuse_second_order

ROWS = 16
"""queries that a program takes"""


def take(query: Tensor, key: Tensor, value: Tensor, chosen: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """query [G, T, D], key [G, S, D], value [G, S, F], chosen int64 [G, T] → (context [G, T, F], energy float32
    [G, T]), differentiable; 0 where nothing was chosen. What flows back to a key is summed up in float32, in whatever
    order it comes, unless torch is to be deterministic."""
    if torch.are_deterministic_algorithms_enabled():
        return at(value, chosen), (query.float() * at(key, chosen).float()).sum(-1) * scale
    with on(query.device):
        found: tuple[Tensor, Tensor] = _Taken.apply(query, key, value, chosen, scale)  # type: ignore[no-untyped-call]
    return found


class _Taken(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, chosen: Tensor, scale: float
    ) -> tuple[Tensor, Tensor]:
        query, key, value, chosen = (x.contiguous() for x in (query, key, value, chosen))
        context = value.new_empty(*chosen.shape, value.shape[-1])
        energy = query.new_empty(chosen.shape, dtype=torch.float32)
        if chosen.numel():
            launch(
                device.take, _grid(chosen), query, key, value, chosen, context, energy,
                *_sizes(chosen, key, value), scale, **_options(key, value),
            )  # fmt: skip
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
        by_query = torch.empty_like(query) if slopes is not None else None
        by_key = torch.zeros_like(key, dtype=torch.float32) if slopes is not None else None
        by_value = torch.zeros_like(value, dtype=torch.float32) if gradient is not None else None
        if chosen.numel():
            given = (chosen if x is None else x.contiguous() for x in (gradient, slopes))
            into = (chosen if x is None else x for x in (by_query, by_key, by_value))  # anything, where it is not asked
            launch(
                device.give_back, _grid(chosen), query, key, chosen, *given, *into, *_sizes(chosen, key, value),
                ctx.scale,
                ENERGY=slopes is not None, CONTEXT=gradient is not None, **_options(key, value),
            )  # fmt: skip
        found = zip((by_query, by_key, by_value), (query, key, value), strict=True)
        return *(None if x is None else x.to(states.dtype) for x, states in found), None, None


def _grid(chosen: Tensor) -> tuple[int]:
    return (-(-chosen.numel() // ROWS),)


def _sizes(chosen: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    return chosen.numel(), chosen.shape[1], key.shape[1], key.shape[2], value.shape[2]


def _options(key: Tensor, value: Tensor) -> dict[str, int]:
    return {"ROWS": ROWS, "FEATURES": power(key.shape[-1]), "VALUES": power(value.shape[-1])}
