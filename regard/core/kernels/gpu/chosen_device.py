"""The values and energies of the keys that hard attention chose, and their gradients, on the device.

Query t of a row of the batch chose key c: context_t = value_c, energy_t = scale · q_t · k_c, and in the backward pass

    ∂q_t = scale ∂energy_t k_c,   ∂k_c += scale ∂energy_t q_t,   ∂value_c += ∂context_t
"""

from __future__ import annotations

import triton
import triton.language as tl

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
def take(
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
def backward(
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
