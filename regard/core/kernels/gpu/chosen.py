"""The values and energies of the keys that hard attention chose; the energies give the log-probabilities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.core.kernels.gpu import chosen_device as device
from regard.core.kernels.gpu.blocks import next_power_of_two
from regard.core.kernels.gpu.device import compile_ahead, launch
from regard.core.kernels.hard import gather_keys
from regard.runtime.device_guard import device_guard

QUERIES_PER_PROGRAM = 16


def take(query: Tensor, key: Tensor, value: Tensor, chosen: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return (context [G, T, F], energy float32 [G, T]) of the chosen keys, differentiable; 0 where none was chosen.

    query [G, T, D], key [G, S, D], value [G, S, F], chosen int64 [G, T]. Gradients of keys and values are summed by
    float32 atomics, in no fixed order, unless torch's deterministic algorithms are enabled.
    """
    if torch.are_deterministic_algorithms_enabled():
        return gather_keys(value, chosen), (query.float() * gather_keys(key, chosen).float()).sum(-1) * scale
    with device_guard(query.device):
        outputs: tuple[Tensor, Tensor] = _TakeChosen.apply(query, key, value, chosen, scale)  # type: ignore[no-untyped-call]
    return outputs


def prepare(query: Tensor, key: Tensor, value: Tensor, scale: float, trains_energy: bool) -> None:
    """Compile the kernels of a new combination. With `trains_energy` the energy has a gradient, as the context has."""
    trains = torch.is_grad_enabled() and value.requires_grad
    widths = key.shape[-1], value.shape[-1]

    def run() -> None:
        q, k, v = (x[:1].contiguous() for x in (query, key, value))
        chosen = torch.zeros(q.shape[:2], dtype=torch.int64, device=q.device)
        context, energy = _take(q, k, v, chosen, scale)
        if trains:
            _backward(q, k, v, chosen, context, energy if trains_energy else None, scale)

    combination = ("chosen", query.dtype, value.dtype, *widths, trains, trains_energy)
    compile_ahead(combination, query.device, run)


class _TakeChosen(torch.autograd.Function):
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
    def backward(ctx: Any, grad_context: Tensor | None, grad_energy: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        refuse_second_order()
        query, key, value, chosen = ctx.saved_tensors
        if not any(ctx.needs_input_grad[:2]):
            grad_energy = None
        if not ctx.needs_input_grad[2]:
            grad_context = None
        grads = _backward(query, key, value, chosen, grad_context, grad_energy, ctx.scale)
        pairs = zip(grads, (query, key, value), strict=True)
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


def _backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    chosen: Tensor,
    grad_context: Tensor | None,
    grad_energy: Tensor | None,
    scale: float,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return (∂query, ∂key, ∂value) from ∂context [G, T, F] and ∂energy [G, T]; None for what has no gradient."""
    grad_query = torch.empty_like(query) if grad_energy is not None else None
    grad_key = torch.zeros_like(key, dtype=torch.float32) if grad_energy is not None else None
    grad_value = torch.zeros_like(value, dtype=torch.float32) if grad_context is not None else None
    if chosen.numel():
        output_grads = (chosen if x is None else x.contiguous() for x in (grad_context, grad_energy))
        results = (chosen if x is None else x for x in (grad_query, grad_key, grad_value))  # placeholders for None
        launch(
            device.backward, _grid(chosen), query, key, chosen, *output_grads, *results,
            *_sizes(chosen, key, value), scale,
            ENERGY=grad_energy is not None, CONTEXT=grad_context is not None, **_options(key, value),
        )  # fmt: skip
    return grad_query, grad_key, grad_value


def _grid(chosen: Tensor) -> tuple[int]:
    return (-(-chosen.numel() // QUERIES_PER_PROGRAM),)


def _sizes(chosen: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    return chosen.numel(), chosen.shape[1], key.shape[1], key.shape[2], value.shape[2]


def _options(key: Tensor, value: Tensor) -> dict[str, int]:
    return {
        "BLOCK_ROWS": QUERIES_PER_PROGRAM,
        "FEATURES": next_power_of_two(key.shape[-1]),
        "VALUES": next_power_of_two(value.shape[-1]),
    }
