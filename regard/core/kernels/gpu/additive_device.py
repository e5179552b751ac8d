"""Additive attention on the device: e = Σ_h v_h tanh(q_h + k_h), its softmax and weighted sum, and all gradients.

G rows of the batch, T queries, S keys, H hidden features, D features of values. `Blocks` say which tiles of queries
meet which tiles of keys (blocks.py). A thread owns pairs (t, s) and goes along h, so that no sum crosses threads: hence
queries and keys lie hidden-first. Going back it is the other way round: for ∂q a thread owns (t, h) and goes along s,
for ∂k it owns (s, h) and goes along t, over states as they lie.

With r = 1 / (e^{2q} e^{2k} + 1): tanh = 1 − 2r, and 1 − tanh² = 4 (r − r²); r comes in twos (tanh.py). Where the
largest |q| of a tile and the largest |k| of another are too large for that, tanh is computed as such. Queries of a
piece begin at `first_row` (additive.py).

Gradients, with p = exp(e − lse) and δ_t = Σ_d ∂c_td c_td − ∂lse_t:
    ∂e = p (∂c valueᵀ − δ),   ∂value = pᵀ ∂c,   ∂q_th = v_h Σ_s ∂e (1 − tanh²),   ∂k_sh = v_h Σ_t …,   ∂v_h = Σ ∂e tanh
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.gpu.tanh import NEAR, exponential, reciprocal, tanh

LENGTHS = ["size", "queries", "keys", "query_tiles", "key_tiles", "blocks", "chunk", "allowed_batch", "allowed_row"]
LENGTHS += ["own_size", "other_size", "own_tiles", "other_tiles"]
"""what changes from call to call: kernels are compiled once for all of them"""
REACHES = ["reach", "query_reach", "key_reach", "own_reach", "other_reach"]
"""two of which share an allocation, in which the second begins anywhere"""


@triton.jit(do_not_specialize=LENGTHS, do_not_specialize_on_alignment=REACHES)
def lay_out(states, laid, reach, size, hidden, laid_hidden, TILE: tl.constexpr, FEATURES: tl.constexpr):
    """states [G, N, H] → e^{2x} hidden-first, filled up with ones, int64 [G, ⌈H / 2⌉, tiles · TILE] of two float32;
    and the largest |x| of each tile, [G, tiles]. A program has a tile and FEATURES of the int64."""
    tile, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    tiles = tl.num_programs(0)
    places = tile * TILE + tl.arange(0, TILE)
    features = tl.program_id(1) * 2 * FEATURES + tl.arange(0, 2 * FEATURES)
    chosen = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    at = states + row * size * hidden + places[:, None] * hidden + features[None, :]
    x = tl.load(at, (places < size)[:, None] & (features < hidden)[None, :], 0.0).to(tl.float32)
    tl.atomic_max(reach + row * tiles + tile, tl.max(tl.max(tl.abs(x), 1), 0), sem="relaxed")
    words = exponential(x).to(tl.int32, bitcast=True)
    low, high = tl.split(tl.reshape(words, (TILE, FEATURES, 2)))
    into = laid + (row * laid_hidden + chosen[None, :]) * tiles * TILE + places[:, None]
    tl.store(into, (low.to(tl.int64) & 0xFFFFFFFF) | (high.to(tl.int64) << 32), (chosen < laid_hidden)[None, :])


@triton.jit
def _two(pair):
    """int64 → the two float32 that it holds"""
    return pair.to(tl.int32).to(tl.float32, bitcast=True), (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _near_sum(
    query, key, vector, rows, columns, begin, end, laid_queries, laid_keys,
    ASM: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Σ_h v_h tanh(q_th + k_sh), [HEIGHT, WIDTH], of states that are laid out, over begin … end − 1 of their int64."""
    total = tl.zeros((HEIGHT, WIDTH), tl.float32)
    highest = 0.0  # what the sum would be if every tanh were 1
    q = tl.load(query + begin * laid_queries + rows)
    k = tl.load(key + begin * laid_keys + columns)
    v = tl.load(vector + begin)
    for h in range(begin, end):
        first_q, second_q = _two(q)
        first_k, second_k = _two(k)
        first_v, second_v = _two(v)
        # Asked for now, so that it is there when it is needed.
        following = tl.minimum(h + 1, end - 1)
        q = tl.load(query + following * laid_queries + rows)
        k = tl.load(key + following * laid_keys + columns)
        v = tl.load(vector + following)
        a = first_q[:, None] * first_k[None, :] + 1.0
        b = second_q[:, None] * second_k[None, :] + 1.0
        total += (first_v * b + second_v * a) * reciprocal(a * b, ASM)
        highest += first_v + second_v
    return highest - 2.0 * total


@triton.jit
def _far_sum(
    query, key, vector, rows, columns, begin, end, queries, keys, hidden, HEIGHT: tl.constexpr, WIDTH: tl.constexpr
):
    """The same of states as they are, whatever they are; `vector` float32 [H]."""
    total = tl.zeros((HEIGHT, WIDTH), tl.float32)
    for h in range(2 * begin, min(2 * end, hidden)):
        q = tl.load(query + rows * hidden + h, rows < queries, 0.0).to(tl.float32)
        k = tl.load(key + columns * hidden + h, columns < keys, 0.0).to(tl.float32)
        total += tl.load(vector + h) * tanh(q[:, None] + k[None, :])
    return total


@triton.jit(do_not_specialize=LENGTHS, do_not_specialize_on_alignment=REACHES)
def energies(
    query, key, vector, raw_query, raw_key, raw_vector, query_reach, key_reach, result,
    owners, others, masks, numbers, table, visible, allowed, visible_rows, allowed_rows,
    first_row, queries, keys, hidden, query_tiles, key_tiles, laid_hidden, chunk, blocks, vector_row,
    allowed_batch, allowed_row, allowed_column,
    ASM: tl.constexpr, VISIBLE: tl.constexpr, ALLOWED: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, STRIP: tl.constexpr,
):  # fmt: skip
    """e [G, n, HEIGHT, WIDTH], −inf where pattern, padding or the caller's mask hides a key; in parts that sum up to
    it, [parts, …]. A program has STRIP rows of a block and `chunk` of the int64 of what is laid out."""
    entry, row = tl.program_id(0) // (HEIGHT // STRIP), tl.program_id(1).to(tl.int64)
    within = tl.program_id(0) % (HEIGHT // STRIP) * STRIP + tl.arange(0, STRIP)
    tile, other = tl.load(owners + entry), tl.load(others + entry)
    rows, columns = first_row + tile * HEIGHT + within, other * WIDTH + tl.arange(0, WIDTH)
    reach = tl.load(query_reach + row * query_tiles + first_row // HEIGHT + tile)
    begin, end = tl.program_id(2) * chunk, min((tl.program_id(2) + 1) * chunk, laid_hidden)
    reach += tl.load(key_reach + row * key_tiles + other)
    if 2.0 * reach <= NEAR:
        found = _near_sum(
            query + row * laid_hidden * query_tiles * HEIGHT, key + row * laid_hidden * key_tiles * WIDTH,
            vector + row * (vector_row // 2), rows, columns, begin, end, query_tiles * HEIGHT, key_tiles * WIDTH,
            ASM, STRIP, WIDTH,
        )  # fmt: skip
    else:
        found = _far_sum(
            raw_query + row * queries * hidden, raw_key + row * keys * hidden, raw_vector + row * vector_row,
            rows, columns, begin, end, queries, keys, hidden, STRIP, WIDTH,
        )  # fmt: skip
    there = (rows < queries)[:, None] & (columns < keys)[None, :]
    found = tl.where(there, found, -float("inf"))
    inside = within[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    mask = tl.load(masks + entry)
    if mask >= 0:
        bits = tl.load(table + mask * HEIGHT + within)[:, None] >> tl.arange(0, WIDTH)[None, :].to(tl.int64)
        found = tl.where((bits & 1) != 0, found, -float("inf"))
    if VISIBLE:
        seen = tl.load(visible + tl.load(visible_rows + row) * keys + columns, columns < keys, 0) != 0
        found = tl.where(seen[None, :], found, -float("inf"))
    if ALLOWED:
        at = rows[:, None].to(tl.int64) * allowed_row + columns[None, :] * allowed_column
        seen = tl.load(allowed + tl.load(allowed_rows + row) * allowed_batch + at, there, 0)
        found = tl.where(seen != 0, found, -float("inf"))
    result += tl.program_id(2).to(tl.int64) * tl.num_programs(1) * blocks * HEIGHT * WIDTH
    tl.store(result + (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH + inside, found)


@triton.jit(do_not_specialize=LENGTHS)
def log_sum(
    energies, lse, starts, numbers, first_row, queries, blocks,
    PARTS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """lse [G, T], online; the parts of the energies are summed up, in place of the first."""
    tile, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rows = first_row + tile * HEIGHT + tl.arange(0, HEIGHT)
    inside = tl.arange(0, HEIGHT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    highest = tl.full((HEIGHT,), -float("inf"), tl.float32)
    total = tl.zeros((HEIGHT,), tl.float32)
    for entry in range(tl.load(starts + tile), tl.load(starts + tile + 1)):
        at = (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH + inside
        e = tl.load(energies + at)
        for part in tl.static_range(1, PARTS):
            e += tl.load(energies + part * tl.num_programs(1).to(tl.int64) * blocks * HEIGHT * WIDTH + at)
        if PARTS > 1:
            tl.store(energies + at, e)
        higher = tl.maximum(highest, tl.max(e, 1))
        finite = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(highest - finite) + tl.sum(tl.exp(e - finite[:, None]), 1)
        highest = higher
    sums = tl.where(total == 0, -float("inf"), highest + tl.log(tl.where(total == 0, 1.0, total)))
    tl.store(lse + row * queries + rows, sums, rows < queries)


@triton.jit
def _product(a, b, total, PRECISION: tl.constexpr, ASM: tl.constexpr):
    """total + a b. "pairs": each float32 as the sum of two bfloat16, of whose products the smallest is left out."""
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
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
    ASM: tl.constexpr,
):  # fmt: skip
    """context [G, T, D]; a program has FEATURES of D."""
    tile, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    d = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    rows = first_row + tile * HEIGHT + tl.arange(0, HEIGHT)
    inside = tl.arange(0, HEIGHT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    sums = tl.load(lse + row * queries + rows, rows < queries, 0.0)
    sums = tl.where(sums == -float("inf"), 0.0, sums)
    mixed = tl.zeros((HEIGHT, FEATURES), tl.float32)
    for entry in range(tl.load(starts + tile), tl.load(starts + tile + 1)):
        columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
        e = tl.load(energies + (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH + inside)
        there = (columns < keys)[:, None] & (d < features)[None, :]
        at = row * keys * features + columns[:, None].to(tl.int64) * features + d[None, :]
        v = tl.load(value + at, there, 0.0)
        mixed = _product(tl.exp(e - sums[:, None]).to(v.dtype), v, mixed, PRECISION, ASM)
    into = context + row * queries * features + rows[:, None].to(tl.int64) * features + d[None, :]
    tl.store(into, mixed.to(context.dtype.element_ty), (rows < queries)[:, None] & (d < features)[None, :])


@triton.jit(do_not_specialize=LENGTHS)
def energy_gradient(
    energies, value, gradient, lse, delta, slopes, across, weights_into, owners, others, numbers,
    first_row, queries, keys, features, blocks,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
    ASM: tl.constexpr,
):  # fmt: skip
    """∂e [G, n, HEIGHT, WIDTH] and the same `across`, [G, n, WIDTH, HEIGHT], and the weights. One program a block."""
    entry, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rows = first_row + tl.load(owners + entry) * HEIGHT + tl.arange(0, HEIGHT)
    columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
    block = (row * blocks + tl.load(numbers + entry)) * HEIGHT * WIDTH
    inside = tl.arange(0, HEIGHT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    found = tl.zeros((HEIGHT, WIDTH), tl.float32)
    for first in range(0, features, FEATURES):
        d = first + tl.arange(0, FEATURES)
        at = row * queries * features + rows[:, None].to(tl.int64) * features + d[None, :]
        g = tl.load(gradient + at, (rows < queries)[:, None] & (d < features)[None, :], 0.0)
        at = row * keys * features + columns[:, None].to(tl.int64) * features + d[None, :]
        v = tl.load(value + at, (columns < keys)[:, None] & (d < features)[None, :], 0.0)
        found = _product(g, tl.trans(v), found, PRECISION, ASM)
    sums = tl.load(lse + row * queries + rows, rows < queries, 0.0)
    weights = tl.exp(tl.load(energies + block + inside) - tl.where(sums == -float("inf"), 0.0, sums)[:, None])
    weighed = tl.load(delta + row * queries + rows, rows < queries, 0.0)
    tl.store(weights_into + block + inside, weights.to(weights_into.dtype.element_ty))
    found = tl.where(weights > 0, weights * (found - weighed[:, None]), 0.0)
    tl.store(slopes + block + inside, found)
    turned = tl.arange(0, WIDTH)[:, None] * HEIGHT + tl.arange(0, HEIGHT)[None, :]
    tl.store(across + block + turned, tl.trans(found))


@triton.jit(do_not_specialize=LENGTHS)
def value_gradient(
    weights, gradient, result, key_starts, block_queries, block_numbers, first_row, queries, keys, features, blocks,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
    ASM: tl.constexpr,
):  # fmt: skip
    """∂value [G, S, D] = pᵀ ∂c"""
    tile, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    d = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    columns = tile * WIDTH + tl.arange(0, WIDTH)
    across = tl.arange(0, WIDTH)[:, None] + tl.arange(0, HEIGHT)[None, :] * WIDTH  # a block, transposed
    total = tl.zeros((WIDTH, FEATURES), tl.float32)
    for place in range(tl.load(key_starts + tile), tl.load(key_starts + tile + 1)):
        rows = first_row + tl.load(block_queries + place) * HEIGHT + tl.arange(0, HEIGHT)
        p = tl.load(weights + (row * blocks + tl.load(block_numbers + place)) * HEIGHT * WIDTH + across)
        at = row * queries * features + rows[:, None].to(tl.int64) * features + d[None, :]
        g = tl.load(gradient + at, (rows < queries)[:, None] & (d < features)[None, :], 0.0)
        total = _product(p, g, total, PRECISION, ASM)
    into = result + row * keys * features + columns[:, None].to(tl.int64) * features + d[None, :]
    tl.store(into, total.to(result.dtype.element_ty), (columns < keys)[:, None] & (d < features)[None, :])


@triton.jit
def _states(base, places, features, size, hidden):
    """float32 [N, FEATURES] of states [size, hidden], 0 beyond"""
    there = (places < size)[:, None] & (features < hidden)[None, :]
    return tl.load(base + places[:, None] * hidden + features[None, :], there, 0.0).to(tl.float32)


@triton.jit
def _put(base, found, places, features, size, hidden):
    there = (places < size)[:, None] & (features < hidden)[None, :]
    tl.store(base + places[:, None] * hidden + features[None, :], found.to(base.dtype.element_ty), there)


@triton.jit
def _far_block(
    own, other, slopes, first_total, second_total, first_vector, second_vector,
    places, one, two, begin, count, own_size, hidden, OWN: tl.constexpr,
):  # fmt: skip
    """Σ ∂e (r − r²) and Σ ∂e r over `count` states of the other side, by tanh, which nothing makes overflow."""
    for more in range(count):
        at = other + (begin + more).to(tl.int64) * hidden
        weights = tl.load(slopes + more * OWN)[:, None]
        x = tl.load(at + one, one < hidden, 0.0).to(tl.float32)
        r = 0.5 - 0.5 * tanh(_states(own, places, one, own_size, hidden) + x[None, :])
        first_total += weights * (r - r * r)
        first_vector += weights * r
        x = tl.load(at + two, two < hidden, 0.0).to(tl.float32)
        r = 0.5 - 0.5 * tanh(_states(own, places, two, own_size, hidden) + x[None, :])
        second_total += weights * (r - r * r)
        second_vector += weights * r
    return first_total, second_total, first_vector, second_vector


@triton.jit(do_not_specialize=LENGTHS, do_not_specialize_on_alignment=REACHES)
def state_gradient(
    own, other, vector, slopes, own_reach, other_reach, result, by_vector, starts, others, numbers,
    own_first, other_first, own_size, other_size, hidden, own_tiles, other_tiles, blocks, vector_row,
    VECTOR: tl.constexpr, ASM: tl.constexpr, OWN: tl.constexpr, OTHER: tl.constexpr,
    STRIP: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """∂q or ∂k [G, N, H], whichever is `own`, of ∂e [G, n, OTHER, OWN]; with VECTOR also Σ ∂e r of each strip, [G, n,
    H]. A program has STRIP of its own states and twice FEATURES of H, two by two."""
    strip, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    tile, within = strip // (OWN // STRIP), strip % (OWN // STRIP) * STRIP + tl.arange(0, STRIP)
    places = own_first + tile * OWN + within
    # Neighbours change places, so that a thread is given not several features, but all states of one.
    one = tl.program_id(1) * 2 * FEATURES + (tl.arange(0, FEATURES) ^ 1)
    two = one + FEATURES
    own, other = own + row * own_size * hidden, other + row * other_size * hidden
    first_power = exponential(_states(own, places, one, own_size, hidden))
    second_power = exponential(_states(own, places, two, own_size, hidden))
    first_total = tl.zeros((STRIP, FEATURES), tl.float32)
    second_total = tl.zeros((STRIP, FEATURES), tl.float32)
    first_vector = tl.zeros((STRIP, FEATURES), tl.float32)
    second_vector = tl.zeros((STRIP, FEATURES), tl.float32)
    reach = tl.load(own_reach + row * own_tiles + own_first // OWN + tile)
    for index in range(tl.load(starts + tile), tl.load(starts + tile + 1)):
        met = tl.load(others + index)
        first = other_first + met * OTHER
        block = slopes + (row * blocks + tl.load(numbers + index)) * OWN * OTHER + within
        count = min(OTHER, other_size - first)
        if 2.0 * (reach + tl.load(other_reach + row * other_tiles + other_first // OTHER + met)) <= NEAR:
            at = other + first.to(tl.int64) * hidden
            first_x, second_x = tl.load(at + one, one < hidden, 0.0), tl.load(at + two, two < hidden, 0.0)
            slope = tl.load(block)
            for more in range(count):
                a = first_power * exponential(first_x.to(tl.float32))[None, :] + 1.0
                b = second_power * exponential(second_x.to(tl.float32))[None, :] + 1.0
                weights = slope[:, None]
                # Asked for now, so that it is there when it is needed.
                following = tl.minimum(more + 1, count - 1)
                at = other + (first + following).to(tl.int64) * hidden
                first_x, second_x = tl.load(at + one, one < hidden, 0.0), tl.load(at + two, two < hidden, 0.0)
                slope = tl.load(block + following * OWN)
                both = reciprocal(a * b, ASM)
                first_r, second_r = b * both, a * both
                first_total += weights * (first_r - first_r * first_r)
                second_total += weights * (second_r - second_r * second_r)
                if VECTOR:
                    first_vector += weights * first_r
                    second_vector += weights * second_r
        else:
            first_total, second_total, first_vector, second_vector = _far_block(
                own, other, block, first_total, second_total, first_vector, second_vector,
                places, one, two, first, count, own_size, hidden, OWN,
            )  # fmt: skip
    first_v = tl.load(vector + row * vector_row + one, one < hidden, 0.0)
    second_v = tl.load(vector + row * vector_row + two, two < hidden, 0.0)
    result += row * own_size * hidden
    _put(result, 4.0 * first_v[None, :] * first_total, places, one, own_size, hidden)
    _put(result, 4.0 * second_v[None, :] * second_total, places, two, own_size, hidden)
    if VECTOR:
        summed = by_vector + (row * tl.num_programs(0) + strip) * hidden
        tl.store(summed + one, tl.sum(first_vector, 0), one < hidden)
        tl.store(summed + two, tl.sum(second_vector, 0), two < hidden)
