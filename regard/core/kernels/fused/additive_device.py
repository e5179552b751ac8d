"""Additive attention on the device: e = Σ_h v_h tanh(q_h + k_h), its softmax and weighted sum, and all gradients.

G rows of the batch, T queries, S keys, H hidden features, D features of values. `Blocks` say which tiles of queries
meet which tiles of keys (blocks.py). A thread owns pairs (t, s) and goes along h, so that no sum crosses threads: hence
queries and keys lie hidden-first, [G, H, N]. Going back it is the other way round: for ∂q a thread owns (t, h) and
goes along s, for ∂k it owns (s, h) and goes along t, over states as they lie, [G, N, H].

    EXACT = False    in pairs of float16 (tanh.py)
    EXACT = True     r = 1 / (e^{2q} e^{2k} + 1),  tanh = 1 − 2r,  1 − tanh² = 4 (r − r²),  in float32. Where some |q|
                     or |k| exceeds 43 the exponentials could overflow, and tanh is computed as such (`far` is not 0).

Gradients, with p = exp(e − lse) and δ_t = Σ_d ∂c_td c_td − ∂lse_t:
    ∂e = p (∂c valueᵀ − δ),   ∂value = pᵀ ∂c,   ∂q_th = v_h Σ_s ∂e (1 − tanh²),   ∂k_sh = v_h Σ_t …,   ∂v_h = Σ ∂e tanh
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.fused.tanh import (
    halves,
    packed,
    reciprocal,
    tanh,
    tanh_and_slope,
    weighted_tanh,
)

FAR = tl.constexpr(43.0)
"""e^{2·43} is still a float32"""
FLUSH = tl.constexpr(8)
"""pairs of features that are summed up in float16 before they go to float32"""


@triton.jit
def lay_out(
    states, laid, far, size, hidden, laid_size, laid_hidden,
    EXACT: tl.constexpr, TILE: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """states [G, N, H] → hidden-first, filled up with zeros: packed int32 [G, H', N'], or e^{2x} float32 of EXACT."""
    row, tile, features = tl.program_id(2), tl.program_id(0), tl.program_id(1)
    places = tile * TILE + tl.arange(0, TILE)
    chosen = features * FEATURES + tl.arange(0, FEATURES)
    base = states + row.to(tl.int64) * size * hidden
    if EXACT:
        there = (places < size)[:, None] & (chosen < hidden)[None, :]
        x = tl.load(base + places[:, None] * hidden + chosen[None, :], there, 0.0).to(tl.float32)
        tl.atomic_max(far, tl.max(tl.max((tl.abs(x) > FAR).to(tl.int32), 1), 0))
        found = tl.exp(2.0 * tl.minimum(tl.maximum(x, -FAR), FAR))
    else:
        low = (places < size)[:, None] & (2 * chosen < hidden)[None, :]
        high = (places < size)[:, None] & (2 * chosen + 1 < hidden)[None, :]
        at = base + places[:, None] * hidden + 2 * chosen[None, :]
        found = packed(
            _within_half(tl.load(at, low, 0.0).to(tl.float32)), _within_half(tl.load(at + 1, high, 0.0).to(tl.float32))
        )
    into = laid + row.to(tl.int64) * laid_hidden * laid_size + chosen[None, :] * laid_size + places[:, None]
    tl.store(into, found, (places < laid_size)[:, None] & (chosen < laid_hidden)[None, :])


@triton.jit
def _within_half(x):
    """Held where float16 can say it; tanh is flat long before."""
    return tl.minimum(tl.maximum(x, -60000.0), 60000.0)


@triton.jit
def _tanh_sum(
    query, key, vector, raw_query, raw_key, far, rows, columns,
    queries, keys, hidden, laid_queries, laid_keys, laid_hidden,
    EXACT: tl.constexpr, ASM: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Σ_h v_h tanh(q_th + k_sh), [HEIGHT, WIDTH]; pointers are at the batch's row already."""
    total = tl.zeros((HEIGHT, WIDTH), tl.float32)
    if EXACT:
        if far > 0:
            for h in range(hidden):
                q = tl.load(raw_query + rows * hidden + h, rows < queries, 0.0).to(tl.float32)
                k = tl.load(raw_key + columns * hidden + h, columns < keys, 0.0).to(tl.float32)
                total += tl.load(vector + h) * tanh(q[:, None] + k[None, :])
        else:
            highest = 0.0  # what the sum would be if every tanh were 1
            for h in range(hidden):
                q = tl.load(query + h * laid_queries + rows)
                k = tl.load(key + h * laid_keys + columns)
                v = tl.load(vector + h)
                total += v * reciprocal(q[:, None] * k[None, :] + 1.0, ASM)
                highest += v
            total = highest - 2.0 * total
    else:
        for first in range(0, laid_hidden, FLUSH):
            part = tl.zeros((HEIGHT, WIDTH), tl.int32)
            for more in tl.static_range(FLUSH):
                h = first + more
                q = tl.load(query + h * laid_queries + rows)
                k = tl.load(key + h * laid_keys + columns)
                part = weighted_tanh(q[:, None], k[None, :], tl.load(vector + h), part, ASM)
            low, high = halves(part)
            total += low + high
    return total


@triton.jit
def energies(
    query, key, vector, raw_query, raw_key, far, result, owners, others, masks, numbers, table,
    visible, allowed, visible_rows, allowed_rows,
    queries, keys, hidden, laid_queries, laid_keys, laid_hidden, blocks,
    vector_stride, vector_scale, allowed_batch, allowed_row, allowed_column,
    EXACT: tl.constexpr, ASM: tl.constexpr, VISIBLE: tl.constexpr, ALLOWED: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """e [G, n, HEIGHT, WIDTH], −inf where pattern, padding or the caller's mask hides a key. One program a block."""
    entry, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rows = tl.load(owners + entry) * HEIGHT + tl.arange(0, HEIGHT)
    columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
    beyond = tl.load(far) if EXACT else 0
    found = tl.load(vector_scale) * _tanh_sum(
        query + row * laid_hidden * laid_queries, key + row * laid_hidden * laid_keys, vector + row * vector_stride,
        raw_query + row * queries * hidden, raw_key + row * keys * hidden, beyond, rows, columns,
        queries, keys, hidden, laid_queries, laid_keys, laid_hidden, EXACT, ASM, HEIGHT, WIDTH,
    )  # fmt: skip
    there = (rows < queries)[:, None] & (columns < keys)[None, :]
    found = tl.where(there, found, -float("inf"))
    inside = tl.arange(0, HEIGHT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    mask = tl.load(masks + entry)
    if mask >= 0:
        found = tl.where(tl.load(table + mask * HEIGHT * WIDTH + inside) != 0, found, -float("inf"))
    if VISIBLE:
        seen = tl.load(visible + tl.load(visible_rows + row) * keys + columns, columns < keys, 0) != 0
        found = tl.where(seen[None, :], found, -float("inf"))
    if ALLOWED:
        at = rows[:, None].to(tl.int64) * allowed_row + columns[None, :] * allowed_column
        seen = tl.load(allowed + tl.load(allowed_rows + row) * allowed_batch + at, there, 0)
        found = tl.where(seen != 0, found, -float("inf"))
    tl.store(result + (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH + inside, found)


@triton.jit
def weighted_sum(
    energies, value, context, lse, starts, others, numbers, queries, keys, features, blocks,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """context [G, T, D] and lse [G, T], by an online softmax; a program has FEATURES of D."""
    tile, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    d = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    rows = tile * HEIGHT + tl.arange(0, HEIGHT)
    inside = tl.arange(0, HEIGHT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    highest = tl.full((HEIGHT,), -float("inf"), tl.float32)
    total = tl.zeros((HEIGHT,), tl.float32)
    mixed = tl.zeros((HEIGHT, FEATURES), tl.float32)
    for entry in range(tl.load(starts + tile), tl.load(starts + tile + 1)):
        columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
        e = tl.load(energies + (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH + inside)
        higher = tl.maximum(highest, tl.max(e, 1))
        finite = tl.where(higher == -float("inf"), 0.0, higher)
        weights = tl.exp(e - finite[:, None])
        fade = tl.exp(highest - finite)
        there = (columns < keys)[:, None] & (d < features)[None, :]
        at = row * keys * features + columns[:, None].to(tl.int64) * features + d[None, :]
        v = tl.load(value + at, there, 0.0)
        total = total * fade + tl.sum(weights, 1)
        mixed = tl.dot(weights.to(v.dtype), v, mixed * fade[:, None], input_precision=PRECISION)
        highest = higher
    empty = total == 0
    mixed = mixed / tl.where(empty, 1.0, total)[:, None]
    into = context + row * queries * features + rows[:, None].to(tl.int64) * features + d[None, :]
    tl.store(into, mixed.to(context.dtype.element_ty), (rows < queries)[:, None] & (d < features)[None, :])
    if tl.program_id(1) == 0:
        sums = tl.where(empty, -float("inf"), highest + tl.log(tl.where(empty, 1.0, total)))
        tl.store(lse + row * queries + rows, sums, rows < queries)


@triton.jit
def energy_gradient(
    energies, value, gradient, lse, delta, weights_into, owners, others, numbers,
    queries, keys, features, blocks,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """∂e [G, n, HEIGHT, WIDTH] in the place of e, and the weights. One program a block."""
    entry, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rows = tl.load(owners + entry) * HEIGHT + tl.arange(0, HEIGHT)
    columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
    inside = tl.arange(0, HEIGHT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    into = (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH + inside
    slopes = tl.zeros((HEIGHT, WIDTH), tl.float32)
    for first in range(0, features, FEATURES):
        d = first + tl.arange(0, FEATURES)
        at = row * queries * features + rows[:, None].to(tl.int64) * features + d[None, :]
        g = tl.load(gradient + at, (rows < queries)[:, None] & (d < features)[None, :], 0.0)
        at = row * keys * features + columns[:, None].to(tl.int64) * features + d[None, :]
        v = tl.load(value + at, (columns < keys)[:, None] & (d < features)[None, :], 0.0)
        slopes = tl.dot(g, tl.trans(v), slopes, input_precision=PRECISION)
    sums = tl.load(lse + row * queries + rows, rows < queries, 0.0)
    weights = tl.exp(tl.load(energies + into) - tl.where(sums == -float("inf"), 0.0, sums)[:, None])
    weighed = tl.load(delta + row * queries + rows, rows < queries, 0.0)
    tl.store(weights_into + into, weights.to(weights_into.dtype.element_ty))
    tl.store(energies + into, tl.where(weights > 0, weights * (slopes - weighed[:, None]), 0.0))


@triton.jit
def value_gradient(
    weights, gradient, result, key_starts, block_queries, block_numbers, queries, keys, features, blocks,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """∂value [G, S, D] = pᵀ ∂c"""
    tile, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    d = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    columns = tile * WIDTH + tl.arange(0, WIDTH)
    across = tl.arange(0, WIDTH)[:, None] + tl.arange(0, HEIGHT)[None, :] * WIDTH  # a block, transposed
    total = tl.zeros((WIDTH, FEATURES), tl.float32)
    for place in range(tl.load(key_starts + tile), tl.load(key_starts + tile + 1)):
        rows = tl.load(block_queries + place) * HEIGHT + tl.arange(0, HEIGHT)
        p = tl.load(weights + (row * blocks + tl.load(block_numbers + place)) * HEIGHT * WIDTH + across)
        at = row * queries * features + rows[:, None].to(tl.int64) * features + d[None, :]
        g = tl.load(gradient + at, (rows < queries)[:, None] & (d < features)[None, :], 0.0)
        total = tl.dot(p, g, total, input_precision=PRECISION)
    into = result + row * keys * features + columns[:, None].to(tl.int64) * features + d[None, :]
    tl.store(into, total.to(result.dtype.element_ty), (columns < keys)[:, None] & (d < features)[None, :])


@triton.jit
def packed_gradient(
    own, other, vector, slopes, result, vector_result, starts, others, numbers,
    own_size, other_size, hidden, half, vector_stride, blocks, own_stride, other_stride,
    VECTOR: tl.constexpr, ASM: tl.constexpr, AREA: tl.constexpr,
    OWN: tl.constexpr, OTHER: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """∂q or ∂k [G, N, H], whichever is `own`, packed [G, N, H / 2]; with VECTOR also ∂v of each tile, [G, n, H]."""
    tile, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    inside = tl.arange(0, OWN)
    places, chosen = tile * OWN + inside, tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    there = (places < own_size)[:, None] & (chosen < half)[None, :]
    mine = tl.load(own + row * own_size * half + places[:, None] * half + chosen[None, :], there, 0)
    other += row * other_size * half
    low = tl.zeros((OWN, FEATURES), tl.float32)
    high = tl.zeros((OWN, FEATURES), tl.float32)
    low_vector = tl.zeros((OWN, FEATURES), tl.float32)
    high_vector = tl.zeros((OWN, FEATURES), tl.float32)
    for index in range(tl.load(starts + tile), tl.load(starts + tile + 1)):
        first = tl.load(others + index) * OTHER
        block = slopes + (row * blocks + tl.load(numbers + index)) * AREA
        for more in range(min(OTHER, other_size - first)):
            theirs = tl.load(other + (first + more) * half + chosen, chosen < half, 0)
            slope = tl.load(block + inside * own_stride + more * other_stride)[:, None]
            low_tanh, high_tanh, low_slope, high_slope = tanh_and_slope(mine, theirs[None, :], ASM)
            low += slope * low_slope
            high += slope * high_slope
            if VECTOR:
                low_vector += slope * low_tanh
                high_vector += slope * high_tanh
    _put(result, vector, low, row, places, 2 * chosen, own_size, hidden, vector_stride)
    _put(result, vector, high, row, places, 2 * chosen + 1, own_size, hidden, vector_stride)
    if VECTOR:
        into = vector_result + (row * tl.num_programs(0) + tile) * hidden + 2 * chosen
        tl.store(into, tl.sum(low_vector, 0), 2 * chosen < hidden)
        tl.store(into + 1, tl.sum(high_vector, 0), 2 * chosen + 1 < hidden)


@triton.jit
def exact_gradient(
    own, other, raw_own, raw_other, far, vector, slopes, result, vector_result, starts, others, numbers,
    own_size, other_size, hidden, vector_stride, blocks, own_stride, other_stride,
    VECTOR: tl.constexpr, ASM: tl.constexpr, AREA: tl.constexpr,
    OWN: tl.constexpr, OTHER: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """As `packed_gradient`, in float32: `own` and `other` are e^{2x} [G, N, H]."""
    tile, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    inside = tl.arange(0, OWN)
    places, chosen = tile * OWN + inside, tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    there = (places < own_size)[:, None] & (chosen < hidden)[None, :]
    at = row * own_size * hidden + places[:, None] * hidden + chosen[None, :]
    beyond = tl.load(far) > 0
    mine = tl.load(own + at, there, 0.0)
    if beyond:
        mine = tl.load(raw_own + at, there, 0.0).to(tl.float32)
    summed = tl.zeros((OWN, FEATURES), tl.float32)
    vectors = tl.zeros((OWN, FEATURES), tl.float32)
    for index in range(tl.load(starts + tile), tl.load(starts + tile + 1)):
        first = tl.load(others + index) * OTHER
        block = slopes + (row * blocks + tl.load(numbers + index)) * AREA
        for more in range(min(OTHER, other_size - first)):
            theirs_at = row * other_size * hidden + (first + more) * hidden + chosen
            slope = tl.load(block + inside * own_stride + more * other_stride)[:, None]
            if beyond:
                theirs = tl.load(raw_other + theirs_at, chosen < hidden, 0.0).to(tl.float32)
                y = tanh(mine + theirs[None, :])
                summed += slope * (1.0 - y * y)
                vectors += slope * y
            else:
                theirs = tl.load(other + theirs_at, chosen < hidden, 0.0)
                r = reciprocal(mine * theirs[None, :] + 1.0, ASM)
                summed += slope * (4.0 * (r - r * r))
                vectors += slope * (1.0 - 2.0 * r)
    _put(result, vector, summed, row, places, chosen, own_size, hidden, vector_stride)
    if VECTOR:
        into = vector_result + (row * tl.num_programs(0) + tile) * hidden + chosen
        tl.store(into, tl.sum(vectors, 0), chosen < hidden)


@triton.jit
def _put(result, vector, summed, row, places, chosen, size, hidden, vector_stride):
    """v_h Σ … into [G, N, H]"""
    v = tl.load(vector + row * vector_stride + chosen, chosen < hidden, 0.0)
    into = result + row * size * hidden + places[:, None].to(tl.int64) * hidden + chosen[None, :]
    there = (places < size)[:, None] & (chosen < hidden)[None, :]
    tl.store(into, (summed * v[None, :]).to(result.dtype.element_ty), there)
