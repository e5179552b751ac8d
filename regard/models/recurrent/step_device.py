"""Triton kernels of one step of a recurrent decoder: a GRU, additive attention of one query per row, and gradients.

B rows of the batch, H features of the state, S source positions, A hidden features of the score, E of source states,
O of outputs. A product of so few rows keeps a GPU busy only if it is split along the summed dimension (split-K): it is
passed as *parts* [parts, B, N], and the kernel that reads it adds them up. `…_row` is the stride of rows, `…_part` that
of parts. Sizes that differ from batch to batch are not specialized on, to avoid recompilation.

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
def sum_parts(parts, offsets, mask, part_stride, COUNT: tl.constexpr):
    """Return the sum of the parts of a product at some offsets."""
    total = tl.load(parts + offsets, mask, 0.0)
    for part in tl.static_range(1, COUNT):
        total += tl.load(parts + part * part_stride + offsets, mask, 0.0)
    return total


@triton.jit(do_not_specialize=["batch"])
def product(
    x, weight, parts, batch, columns, inner, chunk, x_row, border, offset,
    TILE_ROWS: tl.constexpr, TILE_COLUMNS: tl.constexpr, TILE_INNER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute x weightᵀ, x [B, K], weight [N, K], as parts [parts, B, N] of `chunk` terms each. Columns from `border`
    on take x + `offset` for x."""
    rows = tl.program_id(0) * TILE_ROWS + tl.arange(0, TILE_ROWS)
    n = tl.program_id(1) * TILE_COLUMNS + tl.arange(0, TILE_COLUMNS)
    begin = tl.program_id(2) * chunk
    x += tl.where(tl.program_id(1) * TILE_COLUMNS >= border, offset, 0)
    total = tl.zeros((TILE_ROWS, TILE_COLUMNS), tl.float32)
    for first in range(begin, min(begin + chunk, inner), TILE_INNER):
        i = first + tl.arange(0, TILE_INNER)
        a = tl.load(x + rows[:, None] * x_row + i[None, :], (rows < batch)[:, None] & (i < inner)[None, :], 0.0)
        b = tl.load(weight + n[:, None] * inner + i[None, :], (n < columns)[:, None] & (i < inner)[None, :], 0.0)
        total = tl.dot(a, tl.trans(b), total, input_precision=PRECISION)
    out = parts + tl.program_id(2) * batch * columns + rows[:, None] * columns + n[None, :]
    tl.store(out, total, (rows < batch)[:, None] & (n < columns)[None, :])


@triton.jit
def gates_forward(r_in, z_in, a_n, b_n, h, saved, hidden, mask):
    """Return the new state h' of a GRU, given the arguments of r and z, a_n, b_n and h; write r, z, n and b_n to
    `saved`."""
    r, z = _sigmoid(r_in), _sigmoid(z_in)
    n = tanh(a_n + r * b_n)
    tl.store(saved, r, mask)
    tl.store(saved + hidden, z, mask)
    tl.store(saved + 2 * hidden, n, mask)
    tl.store(saved + 3 * hidden, b_n, mask)
    return n + z * (h - n)


@triton.jit
def gates_backward(g, h, saved, a, b_offset, hidden, mask):
    """Write ∂a to `a` and ∂b to `a + b_offset`, given ∂h' (`g`), h and the saved r, z, n and b_n; return ∂h without the
    part that comes through b."""
    r, z = tl.load(saved, mask, 0.0), tl.load(saved + hidden, mask, 0.0)
    n, b_n = tl.load(saved + 2 * hidden, mask, 0.0), tl.load(saved + 3 * hidden, mask, 0.0)
    grad_n = g * (1.0 - z) * (1.0 - n * n)
    grad_r = grad_n * b_n * r * (1.0 - r)
    grad_z = g * (h - n) * z * (1.0 - z)
    b = a + b_offset
    tl.store(a, grad_r, mask)
    tl.store(b, grad_r, mask)
    tl.store(a + hidden, grad_z, mask)
    tl.store(b + hidden, grad_z, mask)
    tl.store(a + 2 * hidden, grad_n, mask)
    tl.store(b + 2 * hidden, grad_n * r, mask)
    return g * z


@triton.jit
def gru_forward(
    inputs, feed, state, state_bias, old, new, saved_gates, hidden, feed_part, state_row, state_part, old_row, new_row,
    FEED_PARTS: tl.constexpr, STATE_PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the new state h' [B, H] of a GRU, and save r, z, n and b_n, [B, 4H], for the gradient.

    `inputs` [B, 3H] are the products with the embeddings; `feed` the product with the last output, in FEED_PARTS parts
    (0: none); `state` is W_h h in STATE_PARTS parts; `old` is h [B, H].
    """
    row, i = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < hidden
    a, b = row * 3 * hidden + i, row * state_row + i
    r_in = tl.load(inputs + a, mask, 0.0)
    z_in = tl.load(inputs + a + hidden, mask, 0.0)
    a_n = tl.load(inputs + a + 2 * hidden, mask, 0.0)
    if FEED_PARTS > 0:
        r_in += sum_parts(feed, a, mask, feed_part, FEED_PARTS)
        z_in += sum_parts(feed, a + hidden, mask, feed_part, FEED_PARTS)
        a_n += sum_parts(feed, a + 2 * hidden, mask, feed_part, FEED_PARTS)
    r_in += sum_parts(state, b, mask, state_part, STATE_PARTS) + tl.load(state_bias + i, mask, 0.0)
    z_in += sum_parts(state, b + hidden, mask, state_part, STATE_PARTS) + tl.load(state_bias + hidden + i, mask, 0.0)
    b_n = sum_parts(state, b + 2 * hidden, mask, state_part, STATE_PARTS)
    b_n += tl.load(state_bias + 2 * hidden + i, mask, 0.0)
    h = tl.load(old + row * old_row + i, mask, 0.0)
    h = gates_forward(r_in, z_in, a_n, b_n, h, saved_gates + row * 4 * hidden + i, hidden, mask)
    tl.store(new + row * new_row + i, h, mask)


@triton.jit(do_not_specialize=["keys"])
def attend_forward(
    query_product, query, key, vector, value, lengths, weights, context,
    keys, hidden, features, product_row, product_part, context_row,
    QUERY_PARTS: tl.constexpr, KEYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute weights [B, S] and context [B, E] of additive attention, one row per program; store q [B, A] too, which
    comes in QUERY_PARTS parts. `key` is k' [B, S, A], `value` [B, S, E]."""
    row = tl.program_id(0)
    s, block = tl.arange(0, KEYS), tl.arange(0, BLOCK)
    real = s < tl.load(lengths + row)
    energies = tl.zeros((KEYS,), tl.float32)
    for first in range(0, hidden, BLOCK):
        a = first + block
        mask = (s < keys)[:, None] & (a < hidden)[None, :]
        k = tl.load(key + row * keys * hidden + s[:, None] * hidden + a[None, :], mask, 0.0)
        q = sum_parts(query_product, row * product_row + a, a < hidden, product_part, QUERY_PARTS)
        tl.store(query + row * hidden + a, q, a < hidden)
        v = tl.load(vector + a, a < hidden, 0.0)
        energies += tl.sum(v[None, :] * tanh(q[None, :] + k), 1)
    energies = tl.where(real, energies, -1.0e30)
    w = tl.where(real, tl.exp(energies - tl.max(energies, 0)), 0.0)
    total = tl.sum(w, 0)
    w = w / tl.where(total == 0, 1.0, total)
    tl.store(weights + row * keys + s, w, s < keys)
    for first in range(0, features, BLOCK):
        d = first + block
        mask = (s < keys)[:, None] & (d < features)[None, :]
        states = tl.load(value + row * keys * features + s[:, None] * features + d[None, :], mask, 0.0)
        tl.store(context + row * context_row + d, tl.sum(w[:, None] * states, 0), d < features)


@triton.jit(do_not_specialize=["size"])
def output_forward(combined, bias, output, size, columns, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the outputs o = tanh(combined + bias) [B, O]; `combined` comes in PARTS parts."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = sum_parts(combined, i, i < size, size, PARTS) + tl.load(bias + i % columns, i < size, 0.0)
    tl.store(output + i, tanh(x), i < size)


@triton.jit(do_not_specialize=["size"])
def output_backward(
    gradient, feed, output, result, size, columns, feed_row, feed_part, FEED_PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    """Compute the gradient of the argument of o = tanh(·), [B, O]: (∂o + gradient from the next step) (1 − o²); the
    latter, `feed`, comes in FEED_PARTS parts."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gradient + i, i < size, 0.0)
    if FEED_PARTS > 0:
        g += sum_parts(feed, i // columns * feed_row + i % columns, i < size, feed_part, FEED_PARTS)
    o = tl.load(output + i, i < size, 0.0)
    tl.store(result + i, g * (1.0 - o * o), i < size)


@triton.jit(do_not_specialize=["keys"])
def attend_backward(
    query, key, vector, value, weights, joined, grad_weights, grad_context, grad_query, grad_energies,
    keys, hidden, features, joined_row, joined_part,
    JOINED_PARTS: tl.constexpr, KEYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute ∂c [B, E], ∂q [B, A] and ∂e [B, S], given ∂c in JOINED_PARTS parts and ∂w [B, S]."""
    row = tl.program_id(0)
    s, block = tl.arange(0, KEYS), tl.arange(0, BLOCK)
    w = tl.load(weights + row * keys + s, s < keys, 0.0)
    grad_w = tl.load(grad_weights + row * keys + s, s < keys, 0.0)
    for first in range(0, features, BLOCK):
        d = first + block
        mask = (s < keys)[:, None] & (d < features)[None, :]
        states = tl.load(value + row * keys * features + s[:, None] * features + d[None, :], mask, 0.0)
        g = sum_parts(joined, row * joined_row + d, d < features, joined_part, JOINED_PARTS)
        tl.store(grad_context + row * features + d, g, d < features)
        grad_w += tl.sum(states * g[None, :], 1)
    grad_e = w * (grad_w - tl.sum(w * grad_w, 0))
    tl.store(grad_energies + row * keys + s, grad_e, s < keys)
    for first in range(0, hidden, BLOCK):
        a = first + block
        q = tl.load(query + row * hidden + a, a < hidden, 0.0)
        v = tl.load(vector + a, a < hidden, 0.0)
        mask = (s < keys)[:, None] & (a < hidden)[None, :]
        y = tanh(q[None, :] + tl.load(key + row * keys * hidden + s[:, None] * hidden + a[None, :], mask, 0.0))
        tl.store(grad_query + row * hidden + a, v * tl.sum(grad_e[:, None] * (1.0 - y * y), 0), a < hidden)


@triton.jit
def gru_backward(
    query, joined, carried, grad_state, saved_gates, old, grad_gates, hidden, b_offset,
    query_part, joined_row, joined_part, carried_row, carried_part, old_row,
    QUERY_PARTS: tl.constexpr, JOINED_PARTS: tl.constexpr, CARRIED_PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of a GRU step: ∂a and, `b_offset` after it, ∂b, [B, 3H], and in `grad_state` ∂h without the
    part that comes through b.

    ∂h' [B, H] is the sum of the gradients through the query, through [s; c] (`joined`) and, unless this is the last
    step (CARRIED_PARTS = 0), through the next step (`carried` and `grad_state`).
    """
    row, i = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < hidden
    g = sum_parts(query, row * hidden + i, mask, query_part, QUERY_PARTS)
    g += sum_parts(joined, row * joined_row + i, mask, joined_part, JOINED_PARTS)
    if CARRIED_PARTS > 0:
        g += sum_parts(carried, row * carried_row + i, mask, carried_part, CARRIED_PARTS)
        g += tl.load(grad_state + row * hidden + i, mask, 0.0)
    h = tl.load(old + row * old_row + i, mask, 0.0)
    grad_h = gates_backward(
        g, h, saved_gates + row * 4 * hidden + i, grad_gates + row * 3 * hidden + i, b_offset, hidden, mask
    )
    tl.store(grad_state + row * hidden + i, grad_h, mask)


@triton.jit(do_not_specialize=["steps", "batch", "keys"])
def keys_backward(
    query, key, vector, grad_energies, grad_key, grad_vector, steps, batch, keys, hidden,
    KEYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute ∂k' [B, S, A] and, for each row, ∂v [B, A], given q [T, B, A] and ∂e [T, B, S] of all steps. A program
    computes one row and BLOCK features."""
    row, a = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    s = tl.arange(0, KEYS)
    mask = (s < keys)[:, None] & (a < hidden)[None, :]
    offsets = row * keys * hidden + s[:, None] * hidden + a[None, :]
    k = tl.load(key + offsets, mask, 0.0)
    total = tl.zeros((KEYS, BLOCK), tl.float32)
    vectors = tl.zeros((KEYS, BLOCK), tl.float32)
    for t in range(steps):
        q = tl.load(query + (t * batch + row) * hidden + a, a < hidden, 0.0)
        grad_e = tl.load(grad_energies + (t * batch + row) * keys + s, s < keys, 0.0)[:, None]
        y = tanh(q[None, :] + k)
        total += grad_e * (1.0 - y * y)
        vectors += grad_e * y
    v = tl.load(vector + a, a < hidden, 0.0)
    tl.store(grad_key + offsets, v[None, :] * total, mask)
    tl.store(grad_vector + row * hidden + a, tl.sum(vectors, 0), a < hidden)
