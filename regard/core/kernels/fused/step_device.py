"""One step of a recurrent decoder on the device: a GRU's gates, additive attention by one query a row, and back.

B rows of the batch, H features of the state, S source positions, A hidden features of the score, E of source states.
Rows of states may lie apart (`…_row` is how far), so that a step writes into what the next one multiplies by.

    r, z = σ(a_r + b_r), σ(a_z + b_z);   n = tanh(a_n + r b_n);   h' = n + z (h − n)
    e_s = Σ_a v_a tanh(q_a + k_sa);      w = softmax(e);          c = Σ_s w_s value_s
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.fused.tanh import tanh


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def gru_forward(by_input, by_state, old, new, kept, hidden, old_row, new_row, BLOCK: tl.constexpr):
    """a, b [B, 3H], h [B, H] → h' [B, H]; r, z, n and b_n are kept, [B, 4H]."""
    row, i = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < hidden
    a, b = by_input + row * 3 * hidden + i, by_state + row * 3 * hidden + i
    reset = _sigmoid(tl.load(a, there, 0.0) + tl.load(b, there, 0.0))
    keep = _sigmoid(tl.load(a + hidden, there, 0.0) + tl.load(b + hidden, there, 0.0))
    by_new = tl.load(b + 2 * hidden, there, 0.0)
    fresh = tanh(tl.load(a + 2 * hidden, there, 0.0) + reset * by_new)
    h = tl.load(old + row * old_row + i, there, 0.0)
    tl.store(new + row * new_row + i, fresh + keep * (h - fresh), there)
    into = kept + row * 4 * hidden + i
    tl.store(into, reset, there)
    tl.store(into + hidden, keep, there)
    tl.store(into + 2 * hidden, fresh, there)
    tl.store(into + 3 * hidden, by_new, there)


@triton.jit
def gru_backward(
    asked, shown, carried, kept, old, by_input, by_state, through, hidden, shown_row, old_row, BLOCK: tl.constexpr
):
    """∂h' [B, H], the sum of three → ∂a, ∂b [B, 3H] and ∂h [B, H] but for what comes through b."""
    row, i = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < hidden
    saved = kept + row * 4 * hidden + i
    reset, keep = tl.load(saved, there, 0.0), tl.load(saved + hidden, there, 0.0)
    fresh, by_new = tl.load(saved + 2 * hidden, there, 0.0), tl.load(saved + 3 * hidden, there, 0.0)
    g = tl.load(asked + row * hidden + i, there, 0.0) + tl.load(carried + row * hidden + i, there, 0.0)
    g += tl.load(shown + row * shown_row + i, there, 0.0)
    h = tl.load(old + row * old_row + i, there, 0.0)
    inside = g * (1.0 - keep) * (1.0 - fresh * fresh)
    by_reset = inside * by_new * reset * (1.0 - reset)
    by_keep = g * (h - fresh) * keep * (1.0 - keep)
    a, b = by_input + row * 3 * hidden + i, by_state + row * 3 * hidden + i
    tl.store(a, by_reset, there)
    tl.store(b, by_reset, there)
    tl.store(a + hidden, by_keep, there)
    tl.store(b + hidden, by_keep, there)
    tl.store(a + 2 * hidden, inside, there)
    tl.store(b + 2 * hidden, inside * reset, there)
    tl.store(through + row * hidden + i, g * keep, there)


@triton.jit
def attend_forward(
    query, key, vector, value, lengths, weights, context, keys, hidden, features, context_row,
    KEYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """q [B, A], k' [B, S, A], value [B, S, E] → weights [B, S], context [B, E]. One program a row."""
    row = tl.program_id(0)
    s, inside = tl.arange(0, KEYS), tl.arange(0, BLOCK)
    real = s < tl.load(lengths + row)
    energies = tl.zeros((KEYS,), tl.float32)
    for first in range(0, hidden, BLOCK):
        a = first + inside
        q = tl.load(query + row * hidden + a, a < hidden, 0.0)
        v = tl.load(vector + a, a < hidden, 0.0)
        there = (s < keys)[:, None] & (a < hidden)[None, :]
        k = tl.load(key + row * keys * hidden + s[:, None] * hidden + a[None, :], there, 0.0)
        energies += tl.sum(v[None, :] * tanh(q[None, :] + k), 1)
    energies = tl.where(real, energies, -1.0e30)
    w = tl.where(real, tl.exp(energies - tl.max(energies, 0)), 0.0)
    total = tl.sum(w, 0)
    w = w / tl.where(total == 0, 1.0, total)
    tl.store(weights + row * keys + s, w, s < keys)
    for first in range(0, features, BLOCK):
        d = first + inside
        there = (s < keys)[:, None] & (d < features)[None, :]
        states = tl.load(value + row * keys * features + s[:, None] * features + d[None, :], there, 0.0)
        tl.store(context + row * context_row + d, tl.sum(w[:, None] * states, 0), d < features)


@triton.jit
def attend_backward(
    query, key, vector, value, weights, gradient, weights_gradient, by_query, by_key, by_vector,
    keys, hidden, features, gradient_row, GIVEN: tl.constexpr, KEYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """∂c [B, E], and with GIVEN ∂w [B, S] → ∂q [B, A]; ∂k' [B, S, A] and ∂v [B, A] are added to."""
    row = tl.program_id(0)
    s, inside = tl.arange(0, KEYS), tl.arange(0, BLOCK)
    w = tl.load(weights + row * keys + s, s < keys, 0.0)
    by_weights = tl.zeros((KEYS,), tl.float32)
    if GIVEN:
        by_weights = tl.load(weights_gradient + row * keys + s, s < keys, 0.0)
    for first in range(0, features, BLOCK):
        d = first + inside
        there = (s < keys)[:, None] & (d < features)[None, :]
        states = tl.load(value + row * keys * features + s[:, None] * features + d[None, :], there, 0.0)
        g = tl.load(gradient + row * gradient_row + d, d < features, 0.0)
        by_weights += tl.sum(states * g[None, :], 1)
    slopes = w * (by_weights - tl.sum(w * by_weights, 0))
    for first in range(0, hidden, BLOCK):
        a = first + inside
        q = tl.load(query + row * hidden + a, a < hidden, 0.0)
        v = tl.load(vector + a, a < hidden, 0.0)
        there = (s < keys)[:, None] & (a < hidden)[None, :]
        at = row * keys * hidden + s[:, None] * hidden + a[None, :]
        y = tanh(q[None, :] + tl.load(key + at, there, 0.0))
        pairs = slopes[:, None] * v[None, :] * (1.0 - y * y)
        tl.store(by_query + row * hidden + a, tl.sum(pairs, 0), a < hidden)
        tl.store(by_key + at, tl.load(by_key + at, there, 0.0) + pairs, there)
        into = by_vector + row * hidden + a
        tl.store(into, tl.load(into, a < hidden, 0.0) + tl.sum(slopes[:, None] * y, 0), a < hidden)


@triton.jit
def output_backward(gradient, fed, output, result, size, FED: tl.constexpr, BLOCK: tl.constexpr):
    """∂ of what o = tanh(·) was made of: (∂o + what comes back from the next step, with FED) (1 − o²)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gradient + i, i < size, 0.0)
    if FED:
        g += tl.load(fed + i, i < size, 0.0)
    o = tl.load(output + i, i < size, 0.0)
    tl.store(result + i, g * (1.0 - o * o), i < size)
