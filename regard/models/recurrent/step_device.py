"""One step of a recurrent decoder on the device: a GRU's gates, additive attention by one query a row, and back.

B rows of the batch, H features of the state, S source positions, A hidden features of the score, E of source states,
O of outputs. A product of so few rows keeps a GPU busy only if it is cut along what it sums over: it comes as *parts*,
[parts, B, N], and who reads it sums them up. Rows may lie apart; `…_row` says how far, `…_apart` how far parts lie.
What differs from batch to batch is not specialized on: a kernel would be compiled again and again.

    r, z = σ(a_r + b_r), σ(a_z + b_z);   n = tanh(a_n + r b_n);   h' = n + z (h − n)
    e_s = Σ_a v_a tanh(q_a + k_sa);      w = softmax(e);          c = Σ_s w_s value_s
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.gpu.tanh import tanh


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _summed(parts, at, there, apart, COUNT: tl.constexpr):
    total = tl.load(parts + at, there, 0.0)
    for part in tl.static_range(1, COUNT):
        total += tl.load(parts + part * apart + at, there, 0.0)
    return total


@triton.jit(do_not_specialize=["batch"])
def product(
    x, weight, parts, batch, columns, inner, chunk, x_row, border, behind,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """x [B, K] weightᵀ, weight [N, K] → parts [parts, B, N], of `chunk` of K each. From column `border` on, x is what
    lies `behind` further on."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    n = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    begin = tl.program_id(2) * chunk
    x += tl.where(tl.program_id(1) * COLUMNS >= border, behind, 0)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(begin, min(begin + chunk, inner), INNER):
        i = first + tl.arange(0, INNER)
        a = tl.load(x + rows[:, None] * x_row + i[None, :], (rows < batch)[:, None] & (i < inner)[None, :], 0.0)
        b = tl.load(weight + n[:, None] * inner + i[None, :], (n < columns)[:, None] & (i < inner)[None, :], 0.0)
        total = tl.dot(a, tl.trans(b), total, input_precision=PRECISION)
    into = parts + tl.program_id(2) * batch * columns + rows[:, None] * columns + n[None, :]
    tl.store(into, total, (rows < batch)[:, None] & (n < columns)[None, :])


@triton.jit
def gru_forward(
    given, fed, state, state_bias, old, new, kept, hidden, fed_apart, state_row, state_apart, old_row, new_row,
    FED: tl.constexpr, STATE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """What the words bring [B, 3H], in FED parts what the last output brings, in STATE parts W_h h, and h [B, H] → h'
    [B, H]; r, z, n and b_n are kept, [B, 4H]."""
    row, i = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < hidden
    a, b = row * 3 * hidden + i, row * state_row + i
    by_reset = tl.load(given + a, there, 0.0)
    by_keep = tl.load(given + a + hidden, there, 0.0)
    by_fresh = tl.load(given + a + 2 * hidden, there, 0.0)
    if FED > 0:
        by_reset += _summed(fed, a, there, fed_apart, FED)
        by_keep += _summed(fed, a + hidden, there, fed_apart, FED)
        by_fresh += _summed(fed, a + 2 * hidden, there, fed_apart, FED)
    by_reset += _summed(state, b, there, state_apart, STATE) + tl.load(state_bias + i, there, 0.0)
    by_keep += _summed(state, b + hidden, there, state_apart, STATE) + tl.load(state_bias + hidden + i, there, 0.0)
    by_new = _summed(state, b + 2 * hidden, there, state_apart, STATE)
    by_new += tl.load(state_bias + 2 * hidden + i, there, 0.0)
    reset, keep = _sigmoid(by_reset), _sigmoid(by_keep)
    fresh = tanh(by_fresh + reset * by_new)
    h = tl.load(old + row * old_row + i, there, 0.0)
    tl.store(new + row * new_row + i, fresh + keep * (h - fresh), there)
    into = kept + row * 4 * hidden + i
    tl.store(into, reset, there)
    tl.store(into + hidden, keep, there)
    tl.store(into + 2 * hidden, fresh, there)
    tl.store(into + 3 * hidden, by_new, there)


@triton.jit(do_not_specialize=["keys"])
def attend_forward(
    asked, query, key, vector, value, lengths, weights, context,
    keys, hidden, features, asked_row, asked_apart, context_row,
    ASKED: tl.constexpr, KEYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """q [B, A] in ASKED parts, k' [B, S, A], value [B, S, E] → q, weights [B, S], context [B, E]. One program a row."""
    row = tl.program_id(0)
    s, inside = tl.arange(0, KEYS), tl.arange(0, BLOCK)
    real = s < tl.load(lengths + row)
    energies = tl.zeros((KEYS,), tl.float32)
    for first in range(0, hidden, BLOCK):
        a = first + inside
        there = (s < keys)[:, None] & (a < hidden)[None, :]
        k = tl.load(key + row * keys * hidden + s[:, None] * hidden + a[None, :], there, 0.0)
        q = _summed(asked, row * asked_row + a, a < hidden, asked_apart, ASKED)
        tl.store(query + row * hidden + a, q, a < hidden)
        v = tl.load(vector + a, a < hidden, 0.0)
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


@triton.jit(do_not_specialize=["size"])
def output_forward(combined, bias, output, size, columns, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """tanh(what comes in PARTS + bias), [B, O]"""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = _summed(combined, i, i < size, size, PARTS) + tl.load(bias + i % columns, i < size, 0.0)
    tl.store(output + i, tanh(found), i < size)


@triton.jit(do_not_specialize=["size"])
def output_backward(
    gradient, fed, output, result, size, columns, fed_row, fed_apart, FED: tl.constexpr, BLOCK: tl.constexpr
):
    """∂ of what o = tanh(·) was made of, [B, O]: (∂o + what comes back from the next step in FED parts) (1 − o²)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gradient + i, i < size, 0.0)
    if FED > 0:
        g += _summed(fed, i // columns * fed_row + i % columns, i < size, fed_apart, FED)
    o = tl.load(output + i, i < size, 0.0)
    tl.store(result + i, g * (1.0 - o * o), i < size)


@triton.jit(do_not_specialize=["keys"])
def attend_backward(
    query, key, vector, value, weights, joined, weights_gradient, by_context, by_query, slopes,
    keys, hidden, features, joined_row, joined_apart,
    JOINED: tl.constexpr, KEYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """∂c [B, E] in JOINED parts, ∂w [B, S] → ∂c, ∂q [B, A] and ∂e [B, S]."""
    row = tl.program_id(0)
    s, inside = tl.arange(0, KEYS), tl.arange(0, BLOCK)
    w = tl.load(weights + row * keys + s, s < keys, 0.0)
    by_weights = tl.load(weights_gradient + row * keys + s, s < keys, 0.0)
    for first in range(0, features, BLOCK):
        d = first + inside
        there = (s < keys)[:, None] & (d < features)[None, :]
        states = tl.load(value + row * keys * features + s[:, None] * features + d[None, :], there, 0.0)
        g = _summed(joined, row * joined_row + d, d < features, joined_apart, JOINED)
        tl.store(by_context + row * features + d, g, d < features)
        by_weights += tl.sum(states * g[None, :], 1)
    slope = w * (by_weights - tl.sum(w * by_weights, 0))
    tl.store(slopes + row * keys + s, slope, s < keys)
    for first in range(0, hidden, BLOCK):
        a = first + inside
        q = tl.load(query + row * hidden + a, a < hidden, 0.0)
        v = tl.load(vector + a, a < hidden, 0.0)
        there = (s < keys)[:, None] & (a < hidden)[None, :]
        y = tanh(q[None, :] + tl.load(key + row * keys * hidden + s[:, None] * hidden + a[None, :], there, 0.0))
        tl.store(by_query + row * hidden + a, v * tl.sum(slope[:, None] * (1.0 - y * y), 0), a < hidden)


@triton.jit
def gates_backward(g, h, saved, a, behind, hidden, there):
    """∂h', h, and where r, z, n and b_n are kept → ∂a into `a`, ∂b `behind` it; returns ∂h but for what comes by b."""
    reset, keep = tl.load(saved, there, 0.0), tl.load(saved + hidden, there, 0.0)
    fresh, by_new = tl.load(saved + 2 * hidden, there, 0.0), tl.load(saved + 3 * hidden, there, 0.0)
    inside = g * (1.0 - keep) * (1.0 - fresh * fresh)
    by_reset = inside * by_new * reset * (1.0 - reset)
    by_keep = g * (h - fresh) * keep * (1.0 - keep)
    b = a + behind
    tl.store(a, by_reset, there)
    tl.store(b, by_reset, there)
    tl.store(a + hidden, by_keep, there)
    tl.store(b + hidden, by_keep, there)
    tl.store(a + 2 * hidden, inside, there)
    tl.store(b + 2 * hidden, inside * reset, there)
    return g * keep


@triton.jit
def gru_backward(
    asked, joined, carried, through, kept, old, by_gates, hidden, behind,
    asked_apart, joined_row, joined_apart, carried_row, carried_apart, old_row,
    ASKED: tl.constexpr, JOINED: tl.constexpr, CARRIED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """∂h' [B, H], the sum of what was asked, joined, and with CARRIED carried on → ∂a, `behind` it ∂b, [B, 3H], and in
    `through` ∂h but for what comes by b."""
    row, i = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < hidden
    g = _summed(asked, row * hidden + i, there, asked_apart, ASKED)
    g += _summed(joined, row * joined_row + i, there, joined_apart, JOINED)
    if CARRIED > 0:
        g += _summed(carried, row * carried_row + i, there, carried_apart, CARRIED)
        g += tl.load(through + row * hidden + i, there, 0.0)
    h = tl.load(old + row * old_row + i, there, 0.0)
    through_h = gates_backward(
        g, h, kept + row * 4 * hidden + i, by_gates + row * 3 * hidden + i, behind, hidden, there
    )
    tl.store(through + row * hidden + i, through_h, there)


@triton.jit(do_not_specialize=["steps", "batch", "keys"])
def keys_backward(
    query, key, vector, slopes, by_key, by_vector, steps, batch, keys, hidden,
    KEYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """q [T, B, A], ∂e [T, B, S] of all steps → ∂k' [B, S, A], and of each row ∂v [B, A]. A program has a row and BLOCK
    of A."""
    row, a = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    s = tl.arange(0, KEYS)
    there = (s < keys)[:, None] & (a < hidden)[None, :]
    at = row * keys * hidden + s[:, None] * hidden + a[None, :]
    k = tl.load(key + at, there, 0.0)
    total = tl.zeros((KEYS, BLOCK), tl.float32)
    vectors = tl.zeros((KEYS, BLOCK), tl.float32)
    for t in range(steps):
        q = tl.load(query + (t * batch + row) * hidden + a, a < hidden, 0.0)
        slope = tl.load(slopes + (t * batch + row) * keys + s, s < keys, 0.0)[:, None]
        y = tanh(q[None, :] + k)
        total += slope * (1.0 - y * y)
        vectors += slope * y
    v = tl.load(vector + a, a < hidden, 0.0)
    tl.store(by_key + at, v[None, :] * total, there)
    tl.store(by_vector + row * hidden + a, tl.sum(vectors, 0), a < hidden)
