"""The values and energies of the keys that hard attention chose; the energies give the log-probabilities.

Query t of a row of the batch chose key c: context_t = value_c, energy_t = scale · q_t · k_c, and in the backward pass

    ∂q_t = scale ∂energy_t k_c,   ∂k_c += scale ∂energy_t q_t,   ∂value_c += ∂context_t
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.core.kernels.gpu.blocks import next_power_of_two
from regard.core.kernels.gpu.launch import compile_ahead, launch
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

    def run() -> None:
        q, k, v = (x[:1].contiguous() for x in (query, key, value))
        chosen = torch.zeros(q.shape[:2], dtype=torch.int64, device=q.device)
        context, energy = _taken(q, k, v, chosen, scale)
        if trains:
            _gradients(q, k, v, chosen, context, energy if trains_energy else None, scale)

    combination = ("chosen", query.dtype, value.dtype, key.shape[-1], value.shape[-1], trains, trains_energy)
    compile_ahead(combination, query.device, run)


class _TakeChosen(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, chosen: Tensor, scale: float
    ) -> tuple[Tensor, Tensor]:
        query, key, value, chosen = (x.contiguous() for x in (query, key, value, chosen))
        ctx.scale = scale
        ctx.save_for_backward(query, key, value, chosen)
        ctx.set_materialize_grads(False)
        return _taken(query, key, value, chosen, scale)

    @staticmethod
    def backward(ctx: Any, grad_context: Tensor | None, grad_energy: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        refuse_second_order()
        query, key, value, chosen = ctx.saved_tensors
        if not any(ctx.needs_input_grad[:2]):
            grad_energy = None
        if not ctx.needs_input_grad[2]:
            grad_context = None
        grads = _gradients(query, key, value, chosen, grad_context, grad_energy, ctx.scale)
        pairs = zip(grads, (query, key, value), strict=True)
        return *(None if x is None else x.to(states.dtype) for x, states in pairs), None, None


def _taken(query: Tensor, key: Tensor, value: Tensor, chosen: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    context = value.new_empty(*chosen.shape, value.shape[-1])
    energy = query.new_empty(chosen.shape, dtype=torch.float32)
    _launch(_take, (query, key, value, chosen, context, energy), key, value, chosen, scale)
    return context, energy


def _gradients(
    query: Tensor, key: Tensor, value: Tensor, chosen: Tensor,
    grad_context: Tensor | None, grad_energy: Tensor | None, scale: float,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """Return (∂query, ∂key, ∂value) from ∂context [G, T, F] and ∂energy [G, T]; None for what has no gradient."""
    energy, context = grad_energy is not None, grad_context is not None
    grad_query = torch.empty_like(query) if energy else None
    grad_key = torch.zeros_like(key, dtype=torch.float32) if energy else None
    grad_value = torch.zeros_like(value, dtype=torch.float32) if context else None
    grads = grad_context, grad_energy, grad_query, grad_key, grad_value
    tensors = query, key, chosen, *(chosen if x is None else x.contiguous() for x in grads)  # placeholders for None
    _launch(_backward, tensors, key, value, chosen, scale, ENERGY=energy, CONTEXT=context)
    return grad_query, grad_key, grad_value


def _launch(
    kernel: Any, tensors: tuple[Tensor, ...], key: Tensor, value: Tensor, chosen: Tensor, scale: float, **options: Any
) -> None:
    launch(
        kernel, (-(-chosen.numel() // QUERIES_PER_PROGRAM),), *tensors,
        chosen.numel(), chosen.shape[1], *key.shape[1:], value.shape[2], scale, BLOCK_ROWS=QUERIES_PER_PROGRAM,
        FEATURES=next_power_of_two(key.shape[-1]), VALUES=next_power_of_two(value.shape[-1]), **options,
    )  # fmt: skip


LENGTHS = ["size", "queries", "keys"]
"""arguments that change from call to call: kernels are compiled once for all their values"""


@triton.jit
def _chosen_keys(chosen, size, queries, keys, BLOCK_ROWS: tl.constexpr):
    """Return (indices of the queries in [G · T], in bounds, indices of their keys in [G · S], has a chosen key)."""
    numbers = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    in_bounds = numbers < size
    key = tl.load(chosen + numbers, in_bounds, -1)
    return numbers, in_bounds, numbers // queries * keys + key, key >= 0


@triton.jit(do_not_specialize=LENGTHS)
def _take(
    query, key, value, chosen, context, energy, size, queries, keys, features, values, scale,
    BLOCK_ROWS: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """Compute context [G, T, F] and float32 energy [G, T]; 0 where no key was chosen."""
    numbers, in_bounds, rows, has_key = _chosen_keys(chosen, size, queries, keys, BLOCK_ROWS)
    d, f = tl.arange(0, FEATURES), tl.arange(0, VALUES)
    valid = has_key[:, None] & (d < features)[None, :]
    q = tl.load(query + numbers[:, None] * features + d[None, :], valid, 0.0).to(tl.float32)
    k = tl.load(key + rows[:, None] * features + d[None, :], valid, 0.0).to(tl.float32)
    tl.store(energy + numbers, tl.sum(q * k, 1) * scale, in_bounds)
    v = tl.load(value + rows[:, None] * values + f[None, :], has_key[:, None] & (f < values)[None, :], 0.0)
    tl.store(context + numbers[:, None] * values + f[None, :], v, in_bounds[:, None] & (f < values)[None, :])


@triton.jit(do_not_specialize=LENGTHS)
def _backward(
    query, key, chosen, grad_context, grad_energy, grad_query, grad_key, grad_value,
    size, queries, keys, features, values, scale,
    ENERGY: tl.constexpr, CONTEXT: tl.constexpr, BLOCK_ROWS: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """With ENERGY, compute ∂q [G, T, D] from ∂energy [G, T] and add to float32 ∂k [G, S, D]. With CONTEXT, add ∂context
    [G, T, F] to float32 ∂value [G, S, F]."""
    numbers, in_bounds, rows, has_key = _chosen_keys(chosen, size, queries, keys, BLOCK_ROWS)
    if ENERGY:
        d = tl.arange(0, FEATURES)
        inside = (d < features)[None, :]
        scaled_grad = tl.load(grad_energy + numbers, has_key, 0.0).to(tl.float32)[:, None] * scale
        q = tl.load(query + numbers[:, None] * features + d[None, :], has_key[:, None] & inside, 0.0).to(tl.float32)
        k = tl.load(key + rows[:, None] * features + d[None, :], has_key[:, None] & inside, 0.0).to(tl.float32)
        target = grad_query + numbers[:, None] * features + d[None, :]
        tl.store(target, (k * scaled_grad).to(grad_query.dtype.element_ty), in_bounds[:, None] & inside)
        tl.atomic_add(
            grad_key + rows[:, None] * features + d[None, :], q * scaled_grad, has_key[:, None] & inside, sem="relaxed"
        )
    if CONTEXT:
        f = tl.arange(0, VALUES)
        valid = has_key[:, None] & (f < values)[None, :]
        g = tl.load(grad_context + numbers[:, None] * values + f[None, :], valid, 0.0).to(tl.float32)
        tl.atomic_add(grad_value + rows[:, None] * values + f[None, :], g, valid, sem="relaxed")
