"""What hard attention takes of the keys that it chose, and the gradients, on the device.

Query t of a row of the batch chose key c: context_t = value_c, energy_t = scale · q_t · k_c, and back

    ∂q_t = scale ∂energy_t k_c,   ∂k_c += scale ∂energy_t q_t,   ∂value_c += ∂context_t
"""

from __future__ import annotations

import triton
import triton.language as tl

LENGTHS = ["size", "queries", "keys"]
"""what changes from call to call: kernels are compiled once for all of them"""


@triton.jit
def _places(chosen, size, queries, keys, ROWS: tl.constexpr):
    """(numbers of the queries among all rows, which are there, rows of their keys, which chose one)"""
    numbers = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    there = numbers < size
    key = tl.load(chosen + numbers, there, -1)
    return numbers, there, numbers // queries * keys + key, key >= 0


@triton.jit(do_not_specialize=LENGTHS)
def take(
    query, key, value, chosen, context, energy, size, queries, keys, features, values, scale,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """context [G, T, F] and float32 energy [G, T]; 0 where nothing was chosen"""
    numbers, there, rows, some = _places(chosen, size, queries, keys, ROWS)
    d, f = tl.arange(0, FEATURES), tl.arange(0, VALUES)
    real = some[:, None] & (d < features)[None, :]
    q = tl.load(query + numbers[:, None] * features + d[None, :], real, 0.0).to(tl.float32)
    k = tl.load(key + rows[:, None] * features + d[None, :], real, 0.0).to(tl.float32)
    tl.store(energy + numbers, tl.sum(q * k, 1) * scale, there)
    v = tl.load(value + rows[:, None] * values + f[None, :], some[:, None] & (f < values)[None, :], 0.0)
    tl.store(context + numbers[:, None] * values + f[None, :], v, there[:, None] & (f < values)[None, :])


@triton.jit(do_not_specialize=LENGTHS)
def give_back(
    query, key, chosen, gradient, slopes, by_query, by_key, by_value, size, queries, keys, features, values, scale,
    ENERGY: tl.constexpr, CONTEXT: tl.constexpr, ROWS: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """From `slopes`, ∂energy [G, T], with ENERGY: ∂q [G, T, D], and added to float32 ∂k [G, S, D]. From ∂context
    [G, T, F], with CONTEXT: added to float32 ∂value [G, S, F]."""
    numbers, there, rows, some = _places(chosen, size, queries, keys, ROWS)
    if ENERGY:
        d = tl.arange(0, FEATURES)
        inside = (d < features)[None, :]
        slope = tl.load(slopes + numbers, some, 0.0).to(tl.float32)[:, None] * scale
        q = tl.load(query + numbers[:, None] * features + d[None, :], some[:, None] & inside, 0.0).to(tl.float32)
        k = tl.load(key + rows[:, None] * features + d[None, :], some[:, None] & inside, 0.0).to(tl.float32)
        into = by_query + numbers[:, None] * features + d[None, :]
        tl.store(into, (k * slope).to(by_query.dtype.element_ty), there[:, None] & inside)
        tl.atomic_add(by_key + rows[:, None] * features + d[None, :], q * slope, some[:, None] & inside, sem="relaxed")
    if CONTEXT:
        f = tl.arange(0, VALUES)
        real = some[:, None] & (f < values)[None, :]
        g = tl.load(gradient + numbers[:, None] * values + f[None, :], real, 0.0).to(tl.float32)
        tl.atomic_add(by_value + rows[:, None] * values + f[None, :], g, real, sem="relaxed")
