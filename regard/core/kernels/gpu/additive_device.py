"""Additive attention on the device: e = Σ_h v_h tanh(q_h + k_h), its softmax and weighted sum, ∂e and ∂value.

G rows of the batch, T queries, S keys, H hidden features, D features of values. `BlockLists` say which tiles of
queries form blocks with which tiles of keys (blocks.py). In the forward pass a thread owns pairs (t, s) and loops over
h, so that no sum crosses threads: hence queries and keys are stored hidden-first.

With r = 1 / (e^{2q} e^{2k} + 1): tanh = 1 − 2r, and 1 − tanh² = 4 (r − r²); r is computed for two features at a time
(tanh.py). Where the largest |q| of a tile and the largest |k| of another are too large for that, tanh is computed
directly. The queries of a piece begin at `first_row` (additive.py).

Gradients, with p = exp(e − lse) and δ_t = Σ_d ∂c_td c_td − ∂lse_t:
    ∂e = p (∂c valueᵀ − δ),   ∂value = pᵀ ∂c;      ∂q, ∂k and ∂v: additive_state_device.py
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.gpu.tanh import NEAR, exponential, reciprocal, tanh

LENGTHS = ["size", "queries", "keys", "query_tiles", "key_tiles", "blocks", "chunk", "allowed_batch", "allowed_row"]
"""arguments that change from call to call: kernels are compiled once for all their values"""
UNALIGNED = ["max_abs", "query_max_abs", "key_max_abs"]
"""tensors that share an allocation in pairs, so that the second is not always aligned"""


@triton.jit(do_not_specialize=LENGTHS, do_not_specialize_on_alignment=UNALIGNED)
def lay_out(states, exponentials, max_abs, size, hidden, hidden_pairs, TILE: tl.constexpr, FEATURES: tl.constexpr):
    """Convert states [G, N, H] to e^{2x} hidden-first, padded with ones, int64 [G, ⌈H / 2⌉, tiles · TILE] of two
    float32 each, and compute the largest |x| of each tile, [G, tiles]. A program has a tile and FEATURES int64."""
    tile, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    tiles = tl.num_programs(0)
    indices = tile * TILE + tl.arange(0, TILE)
    features = tl.program_id(1) * 2 * FEATURES + tl.arange(0, 2 * FEATURES)
    pairs = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    pointers = states + row * size * hidden + indices[:, None] * hidden + features[None, :]
    x = tl.load(pointers, (indices < size)[:, None] & (features < hidden)[None, :], 0.0).to(tl.float32)
    tl.atomic_max(max_abs + row * tiles + tile, tl.max(tl.max(tl.abs(x), 1), 0), sem="relaxed")
    words = exponential(x).to(tl.int32, bitcast=True)
    low, high = tl.split(tl.reshape(words, (TILE, FEATURES, 2)))
    target = exponentials + (row * hidden_pairs + pairs[None, :]) * tiles * TILE + indices[:, None]
    tl.store(target, (low.to(tl.int64) & 0xFFFFFFFF) | (high.to(tl.int64) << 32), (pairs < hidden_pairs)[None, :])


@triton.jit
def _unpack(pair):
    """Return the two float32 that an int64 consists of."""
    return pair.to(tl.int32).to(tl.float32, bitcast=True), (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _near_sum(
    query, key, vector, rows, columns, begin, end, laid_queries, laid_keys,
    ASM: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Return Σ_h v_h tanh(q_th + k_sh), [HEIGHT, WIDTH], of hidden-first states, over their int64 begin … end − 1."""
    total = tl.zeros((HEIGHT, WIDTH), tl.float32)
    vector_sum = 0.0  # what the sum would be if every tanh were 1
    q = tl.load(query + begin * laid_queries + rows)
    k = tl.load(key + begin * laid_keys + columns)
    v = tl.load(vector + begin)
    for h in range(begin, end):
        first_q, second_q = _unpack(q)
        first_k, second_k = _unpack(k)
        first_v, second_v = _unpack(v)
        # Prefetched for the next iteration.
        following = tl.minimum(h + 1, end - 1)
        q = tl.load(query + following * laid_queries + rows)
        k = tl.load(key + following * laid_keys + columns)
        v = tl.load(vector + following)
        a = first_q[:, None] * first_k[None, :] + 1.0
        b = second_q[:, None] * second_k[None, :] + 1.0
        total += (first_v * b + second_v * a) * reciprocal(a * b, ASM)
        vector_sum += first_v + second_v
    return vector_sum - 2.0 * total


@triton.jit
def _far_sum(
    query, key, vector, rows, columns, begin, end, queries, keys, hidden, HEIGHT: tl.constexpr, WIDTH: tl.constexpr
):
    """Return the same sum for states of any size, in their usual layout; `vector` float32 [H]."""
    total = tl.zeros((HEIGHT, WIDTH), tl.float32)
    for h in range(2 * begin, min(2 * end, hidden)):
        q = tl.load(query + rows * hidden + h, rows < queries, 0.0).to(tl.float32)
        k = tl.load(key + columns * hidden + h, columns < keys, 0.0).to(tl.float32)
        total += tl.load(vector + h) * tanh(q[:, None] + k[None, :])
    return total


@triton.jit(do_not_specialize=LENGTHS, do_not_specialize_on_alignment=UNALIGNED)
def energies(
    query, key, vector, raw_query, raw_key, raw_vector, query_max_abs, key_max_abs, result,
    owners, others, masks, numbers, table, visible, allowed, visible_rows, allowed_rows,
    first_row, queries, keys, hidden, query_tiles, key_tiles, hidden_pairs, chunk, blocks, vector_row,
    allowed_batch, allowed_row, allowed_column,
    ASM: tl.constexpr, VISIBLE: tl.constexpr, ALLOWED: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, STRIP: tl.constexpr,
):  # fmt: skip
    """Compute e [G, n, HEIGHT, WIDTH], −inf where pattern, padding or the caller's mask hides a key, in parts that sum
    up to it, [parts, …]. A program has STRIP rows of a block and `chunk` int64 of the hidden-first states."""
    entry, row = tl.program_id(0) // (HEIGHT // STRIP), tl.program_id(1).to(tl.int64)
    within = tl.program_id(0) % (HEIGHT // STRIP) * STRIP + tl.arange(0, STRIP)
    tile, other = tl.load(owners + entry), tl.load(others + entry)
    rows, columns = first_row + tile * HEIGHT + within, other * WIDTH + tl.arange(0, WIDTH)
    max_abs = tl.load(query_max_abs + row * query_tiles + first_row // HEIGHT + tile)
    begin, end = tl.program_id(2) * chunk, min((tl.program_id(2) + 1) * chunk, hidden_pairs)
    max_abs += tl.load(key_max_abs + row * key_tiles + other)
    if 2.0 * max_abs <= NEAR:
        energy = _near_sum(
            query + row * hidden_pairs * query_tiles * HEIGHT, key + row * hidden_pairs * key_tiles * WIDTH,
            vector + row * (vector_row // 2), rows, columns, begin, end, query_tiles * HEIGHT, key_tiles * WIDTH,
            ASM, STRIP, WIDTH,
        )  # fmt: skip
    else:
        energy = _far_sum(
            raw_query + row * queries * hidden, raw_key + row * keys * hidden, raw_vector + row * vector_row,
            rows, columns, begin, end, queries, keys, hidden, STRIP, WIDTH,
        )  # fmt: skip
    in_bounds = (rows < queries)[:, None] & (columns < keys)[None, :]
    energy = tl.where(in_bounds, energy, -float("inf"))
    inside = within[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    mask = tl.load(masks + entry)
    if mask >= 0:
        bits = tl.load(table + mask * HEIGHT + within)[:, None] >> tl.arange(0, WIDTH)[None, :].to(tl.int64)
        energy = tl.where((bits & 1) != 0, energy, -float("inf"))
    if VISIBLE:
        visible_mask = tl.load(visible + tl.load(visible_rows + row) * keys + columns, columns < keys, 0) != 0
        energy = tl.where(visible_mask[None, :], energy, -float("inf"))
    if ALLOWED:
        offsets = rows[:, None].to(tl.int64) * allowed_row + columns[None, :] * allowed_column
        visible_mask = tl.load(allowed + tl.load(allowed_rows + row) * allowed_batch + offsets, in_bounds, 0)
        energy = tl.where(visible_mask != 0, energy, -float("inf"))
    result += tl.program_id(2).to(tl.int64) * tl.num_programs(1) * blocks * HEIGHT * WIDTH
    tl.store(result + (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH + inside, energy)


@triton.jit(do_not_specialize=LENGTHS)
def log_sum(
    energies, lse, starts, numbers, first_row, queries, blocks,
    PARTS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Compute lse [G, T], online; the sum of the parts of the energies replaces the first part."""
    tile, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rows = first_row + tile * HEIGHT + tl.arange(0, HEIGHT)
    inside = tl.arange(0, HEIGHT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    highest = tl.full((HEIGHT,), -float("inf"), tl.float32)
    total = tl.zeros((HEIGHT,), tl.float32)
    for entry in range(tl.load(starts + tile), tl.load(starts + tile + 1)):
        offsets = (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH + inside
        e = tl.load(energies + offsets)
        for part in tl.static_range(1, PARTS):
            e += tl.load(energies + part * tl.num_programs(1).to(tl.int64) * blocks * HEIGHT * WIDTH + offsets)
        if PARTS > 1:
            tl.store(energies + offsets, e)
        higher = tl.maximum(highest, tl.max(e, 1))
        finite = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(highest - finite) + tl.sum(tl.exp(e - finite[:, None]), 1)
        highest = higher
    row_lse = tl.where(total == 0, -float("inf"), highest + tl.log(tl.where(total == 0, 1.0, total)))
    tl.store(lse + row * queries + rows, row_lse, rows < queries)


@triton.jit
def _product(a, b, total, PRECISION: tl.constexpr, ASM: tl.constexpr):
    """Return total + a b. "pairs": each float32 is the sum of two bfloat16, and the smallest product is left out."""
    if PRECISION == "pairs":
        high_a, high_b = a.to(tl.bfloat16), b.to(tl.bfloat16)
        low_a, low_b = (a - high_a.to(tl.float32)).to(tl.bfloat16), (b - high_b.to(tl.float32)).to(tl.bfloat16)
        total = _narrow_product(low_a, high_b, total, ASM)
        total = _narrow_product(high_a, low_b, total, ASM)
        return _narrow_product(high_a, high_b, total, ASM)
    else:
        return tl.dot(a, b, total, input_precision=PRECISION)


@triton.jit
def _narrow_product(a, b, total, ASM: tl.constexpr):
    if ASM:
        return tl.dot(a, b, total)
    else:  # Triton's interpreter cannot multiply bfloat16
        return tl.dot(a.to(tl.float32), b.to(tl.float32), total, input_precision="ieee")


@triton.jit(do_not_specialize=LENGTHS)
def weighted_sum(
    energies, value, lse, context, starts, others, numbers, first_row, queries, keys, features, blocks,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Compute context [G, T, D]; a program has FEATURES of D."""
    tile, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    d = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    rows = first_row + tile * HEIGHT + tl.arange(0, HEIGHT)
    inside = tl.arange(0, HEIGHT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    row_lse = tl.load(lse + row * queries + rows, rows < queries, 0.0)
    row_lse = tl.where(row_lse == -float("inf"), 0.0, row_lse)
    context_sum = tl.zeros((HEIGHT, FEATURES), tl.float32)
    for entry in range(tl.load(starts + tile), tl.load(starts + tile + 1)):
        columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
        e = tl.load(energies + (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH + inside)
        in_bounds = (columns < keys)[:, None] & (d < features)[None, :]
        offsets = row * keys * features + columns[:, None].to(tl.int64) * features + d[None, :]
        v = tl.load(value + offsets, in_bounds, 0.0)
        context_sum = _product(tl.exp(e - row_lse[:, None]).to(v.dtype), v, context_sum, PRECISION, ASM)
    target = context + row * queries * features + rows[:, None].to(tl.int64) * features + d[None, :]
    tl.store(target, context_sum.to(context.dtype.element_ty), (rows < queries)[:, None] & (d < features)[None, :])


@triton.jit(do_not_specialize=LENGTHS)
def energy_gradient(
    energies, value, gradient, lse, delta, grad_energies, transposed, weights_result, owners, others, numbers,
    first_row, queries, keys, features, blocks,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Compute ∂e [G, n, HEIGHT, WIDTH], its transpose [G, n, WIDTH, HEIGHT], and the weights. One program per block."""
    entry, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rows = first_row + tl.load(owners + entry) * HEIGHT + tl.arange(0, HEIGHT)
    columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
    block = (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH
    inside = tl.arange(0, HEIGHT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    gradients = tl.zeros((HEIGHT, WIDTH), tl.float32)
    for first in range(0, features, FEATURES):
        d = first + tl.arange(0, FEATURES)
        offsets = row * queries * features + rows[:, None].to(tl.int64) * features + d[None, :]
        g = tl.load(gradient + offsets, (rows < queries)[:, None] & (d < features)[None, :], 0.0)
        offsets = row * keys * features + columns[:, None].to(tl.int64) * features + d[None, :]
        v = tl.load(value + offsets, (columns < keys)[:, None] & (d < features)[None, :], 0.0)
        gradients = _product(g, tl.trans(v), gradients, PRECISION, ASM)
    row_lse = tl.load(lse + row * queries + rows, rows < queries, 0.0)
    weights = tl.exp(tl.load(energies + block + inside) - tl.where(row_lse == -float("inf"), 0.0, row_lse)[:, None])
    row_delta = tl.load(delta + row * queries + rows, rows < queries, 0.0)
    tl.store(weights_result + block + inside, weights.to(weights_result.dtype.element_ty))
    gradients = tl.where(weights > 0, weights * (gradients - row_delta[:, None]), 0.0)
    tl.store(grad_energies + block + inside, gradients)
    transposed_inside = tl.arange(0, WIDTH)[:, None] * HEIGHT + tl.arange(0, HEIGHT)[None, :]
    tl.store(transposed + block + transposed_inside, tl.trans(gradients))


@triton.jit(do_not_specialize=LENGTHS)
def value_gradient(
    weights, gradient, result, key_starts, block_queries, block_numbers, first_row, queries, keys, features, blocks,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Compute ∂value [G, S, D] = pᵀ ∂c."""
    tile, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    d = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    columns = tile * WIDTH + tl.arange(0, WIDTH)
    transposed = tl.arange(0, WIDTH)[:, None] + tl.arange(0, HEIGHT)[None, :] * WIDTH  # a block, transposed
    total = tl.zeros((WIDTH, FEATURES), tl.float32)
    for entry in range(tl.load(key_starts + tile), tl.load(key_starts + tile + 1)):
        rows = first_row + tl.load(block_queries + entry) * HEIGHT + tl.arange(0, HEIGHT)
        p = tl.load(weights + (row * blocks + tl.load(block_numbers + entry)) * HEIGHT * WIDTH + transposed)
        offsets = row * queries * features + rows[:, None].to(tl.int64) * features + d[None, :]
        g = tl.load(gradient + offsets, (rows < queries)[:, None] & (d < features)[None, :], 0.0)
        total = _product(p, g, total, PRECISION, ASM)
    target = result + row * keys * features + columns[:, None].to(tl.int64) * features + d[None, :]
    tl.store(target, total.to(result.dtype.element_ty), (columns < keys)[:, None] & (d < features)[None, :])
