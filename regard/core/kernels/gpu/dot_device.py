"""Attention by products along lists of blocks, on the device: softmax(scale · q kᵀ) value, and its gradients.

G rows of the batch, T queries, S keys, D features of keys, F of values. A *job* is a stretch of the list of one tile
(jobs.py). Most tiles are one job, which writes its result. The list of a tile that meets far more than others, as one
of global positions, is several jobs, so that it does not hold up the rest: they write parts, put together afterwards.

In each job blocks without a mask come first, then those that have one; each kind has a loop of its own. With ONE_LOOP a
single loop takes both: half the code to compile, for what spends little of its time on masks. Energies are in units of
log 2, for exp2.

With NOISE there is Gumbel noise on the energies, of positions `places` and `key_places`, `share` of it.

    p = 2^(e − lse),   ∂e = p (∂c valueᵀ − δ),   ∂q = scale ∂e k,   ∂k = scale ∂eᵀ q,   ∂value = pᵀ ∂c
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.gpu.noise_device import gumbel

LENGTHS = ["queries", "heavy_queries", "keys", "parts"]
"""what changes from call to call: kernels are compiled once for all of them"""


@triton.jit
def _rows_of(base, places, size, width, FEATURES: tl.constexpr, EVEN: tl.constexpr):
    """[N, FEATURES] of states [size, width], 0 beyond; EVEN: nothing lies beyond but features."""
    d = tl.arange(0, FEATURES)
    at = base + places[:, None].to(tl.int64) * width + d[None, :]
    if EVEN:
        return tl.load(at, (d < width)[None, :], 0.0)
    else:
        return tl.load(at, (places < size)[:, None] & (d < width)[None, :], 0.0)


@triton.jit
def _put(base, found, places, size, width, FEATURES: tl.constexpr):
    d = tl.arange(0, FEATURES)
    at = base + places[:, None].to(tl.int64) * width + d[None, :]
    tl.store(at, found.to(base.dtype.element_ty), (places < size)[:, None] & (d < width)[None, :])


@triton.jit
def _shown(table, mask, INTERVALS: tl.constexpr, ACROSS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    """The block's mask, bool [HEIGHT, WIDTH]; ACROSS: [WIDTH, HEIGHT]. INTERVALS: each query sees a stretch. A negative
    number is the mask of a block all of whose pairs may look."""
    i, j = tl.arange(0, HEIGHT), tl.arange(0, WIDTH)
    everything = mask < 0
    mask = tl.maximum(mask, 0)
    if INTERVALS:
        low, high = tl.load(table + mask * 2 * HEIGHT + i), tl.load(table + (mask * 2 + 1) * HEIGHT + i)
        low, high = tl.where(everything, 0, low), tl.where(everything, WIDTH, high)
        if ACROSS:
            return (j[:, None] >= low[None, :]) & (j[:, None] < high[None, :])
        else:
            return (j[None, :] >= low[:, None]) & (j[None, :] < high[:, None])
    else:
        bits = tl.load(table + mask * HEIGHT + i)
        bits = tl.where(everything, -1, bits)
        if ACROSS:
            return ((bits[None, :] >> j[:, None].to(tl.int64)) & 1) != 0
        else:
            return ((bits[:, None] >> j[None, :].to(tl.int64)) & 1) != 0


@triton.jit
def _seen(
    energies, entry, masks, table, visible, columns, keys,
    VISIBLE: tl.constexpr, MASKED: tl.constexpr, INTERVALS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """energies [HEIGHT, WIDTH], −inf where the block's mask or padding hides a key."""
    if MASKED:
        shown = _shown(table, tl.load(masks + entry), INTERVALS, False, HEIGHT, WIDTH)
        energies = tl.where(shown, energies, -float("inf"))
    if VISIBLE:
        there = tl.load(visible + columns, columns < keys, 0) != 0
        energies = tl.where(there[None, :], energies, -float("inf"))
    return energies


@triton.jit
def _noise_of(states, places, row, rows, queries, NOISE: tl.constexpr):
    """(state of the row, positions of the queries), if there is noise."""
    if NOISE:
        return tl.load(states + row), tl.load(places + rows, rows < queries, 0)
    else:
        return 0, rows


@triton.jit
def _forward_stretch(
    q, key, value, visible, others, masks, table, highest, total, mixed, begin, end, keys, features, values, scale,
    state, at, key_places, share, NOISE: tl.constexpr,
    VISIBLE: tl.constexpr, MASKED: tl.constexpr, INTERVALS: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """An online softmax over entries begin … end − 1 of the list."""
    for entry in range(begin, end):
        columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
        k = _rows_of(key, columns, keys, features, FEATURES, not MASKED)
        energies = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        if NOISE:
            energies += gumbel(state, at, tl.load(key_places + columns, columns < keys, 0), False) * share
        energies = _seen(
            energies, entry, masks, table, visible, columns, keys, VISIBLE, MASKED, INTERVALS, HEIGHT, WIDTH
        )
        higher = tl.maximum(highest, tl.max(energies, 1))
        finite = tl.where(higher == -float("inf"), 0.0, higher) if MASKED or VISIBLE else higher
        weights = tl.exp2(energies - finite[:, None])
        fade = tl.exp2(highest - finite)
        total = total * fade + tl.sum(weights, 1)
        v = _rows_of(value, columns, keys, values, VALUES, not MASKED)
        mixed = tl.dot(weights.to(v.dtype), v, mixed * fade[:, None], input_precision=PRECISION)
        highest = higher
    return highest, total, mixed


@triton.jit(do_not_specialize=LENGTHS)
def forward(
    query, key, value, context, lse, part_context, part_lse, visible, visible_rows,
    tiles, begins, middles, ends, slots, others, masks, table,
    queries, keys, features, values, parts, scale, states, places, key_places, share,
    NOISE: tl.constexpr, VISIBLE: tl.constexpr, INTERVALS: tl.constexpr, ONE_LOOP: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """context [G, T, F] and lse [G, T]; of a job that is a part, [G, parts, HEIGHT, F] and [G, parts, HEIGHT]."""
    job, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    slot, inside = tl.load(slots + job), tl.arange(0, HEIGHT)
    rows = tl.load(tiles + job) * HEIGHT + inside
    q = _rows_of(query + row * queries * features, rows, queries, features, FEATURES, False)
    key += row * keys * features
    value += row * keys * values
    if VISIBLE:
        visible += tl.load(visible_rows + row) * keys
    state, at = _noise_of(states, places, row, rows, queries, NOISE)
    highest = tl.full((HEIGHT,), -float("inf"), tl.float32)
    total = tl.zeros((HEIGHT,), tl.float32)
    mixed = tl.zeros((HEIGHT, VALUES), tl.float32)
    begin, middle, end = tl.load(begins + job), tl.load(middles + job), tl.load(ends + job)
    if not ONE_LOOP:
        highest, total, mixed = _forward_stretch(
            q, key, value, visible, others, masks, table, highest, total, mixed, begin, middle, keys, features, values,
            scale, state, at, key_places, share, NOISE, VISIBLE, False, INTERVALS,
            HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
        )  # fmt: skip
        begin = middle
    highest, total, mixed = _forward_stretch(
        q, key, value, visible, others, masks, table, highest, total, mixed, begin, end, keys, features, values,
        scale, state, at, key_places, share, NOISE, VISIBLE, True, INTERVALS,
        HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
    )  # fmt: skip
    empty = total == 0
    mixed = mixed / tl.where(empty, 1.0, total)[:, None]
    sums = tl.where(empty, -float("inf"), highest + tl.log2(tl.where(empty, 1.0, total)))
    if slot < 0:
        _put(context + row * queries * values, mixed, rows, queries, values, VALUES)
        tl.store(lse + row * queries + rows, sums, rows < queries)
    else:
        _put(part_context + (row * parts + slot) * HEIGHT * values, mixed, inside, HEIGHT, values, VALUES)
        tl.store(part_lse + (row * parts + slot) * HEIGHT + inside, sums)


@triton.jit
def _query_stretch(
    q, g, sums, weighed, key, value, visible, others, masks, table, found, begin, end, keys, features, values, scale,
    state, at, key_places, share, NOISE: tl.constexpr,
    VISIBLE: tl.constexpr, MASKED: tl.constexpr, INTERVALS: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    for entry in range(begin, end):
        columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
        k = _rows_of(key, columns, keys, features, FEATURES, not MASKED)
        v = _rows_of(value, columns, keys, values, VALUES, not MASKED)
        energies = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        if NOISE:
            energies += gumbel(state, at, tl.load(key_places + columns, columns < keys, 0), False) * share
        energies = _seen(
            energies, entry, masks, table, visible, columns, keys, VISIBLE, MASKED, INTERVALS, HEIGHT, WIDTH
        )
        weights = tl.exp2(energies - sums[:, None])
        slopes = weights * (tl.dot(g, tl.trans(v), input_precision=PRECISION) - weighed[:, None])
        found = tl.dot(slopes.to(k.dtype), k, found, input_precision=PRECISION)
    return found


@triton.jit(do_not_specialize=LENGTHS)
def query_gradient(
    query, key, value, gradient, lse, delta, result, part_result, visible, visible_rows,
    tiles, begins, middles, ends, slots, others, masks, table,
    queries, keys, features, values, parts, scale, back, states, places, key_places, share,
    NOISE: tl.constexpr, VISIBLE: tl.constexpr, INTERVALS: tl.constexpr, ONE_LOOP: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """∂q [G, T, D]; of a job that is a part, float32 [G, parts, HEIGHT, D]. `back` is the scale of ∂e k."""
    job, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    slot, inside = tl.load(slots + job), tl.arange(0, HEIGHT)
    rows = tl.load(tiles + job) * HEIGHT + inside
    q = _rows_of(query + row * queries * features, rows, queries, features, FEATURES, False)
    g = _rows_of(gradient + row * queries * values, rows, queries, values, VALUES, False)
    sums = tl.load(lse + row * queries + rows, rows < queries, float("inf"))
    weighed = tl.load(delta + row * queries + rows, rows < queries, 0.0)
    key += row * keys * features
    value += row * keys * values
    if VISIBLE:
        visible += tl.load(visible_rows + row) * keys
    state, at = _noise_of(states, places, row, rows, queries, NOISE)
    found = tl.zeros((HEIGHT, FEATURES), tl.float32)
    begin, middle, end = tl.load(begins + job), tl.load(middles + job), tl.load(ends + job)
    if not ONE_LOOP:
        found = _query_stretch(
            q, g, sums, weighed, key, value, visible, others, masks, table, found, begin, middle, keys, features,
            values, scale, state, at, key_places, share, NOISE, VISIBLE, False, INTERVALS,
            HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
        )  # fmt: skip
        begin = middle
    found = _query_stretch(
        q, g, sums, weighed, key, value, visible, others, masks, table, found, begin, end, keys, features, values,
        scale, state, at, key_places, share, NOISE, VISIBLE, True, INTERVALS,
        HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
    )  # fmt: skip
    if slot < 0:
        _put(result + row * queries * features, found * back, rows, queries, features, FEATURES)
    else:
        into = part_result + (row * parts + slot) * HEIGHT * features
        _put(into, found * back, inside, HEIGHT, features, FEATURES)


@triton.jit
def _key_stretch(
    k, v, there, query, gradient, lse, delta, others, masks, table, by_key, by_value, begin, end,
    queries, features, values, scale, state, places, j, share, NOISE: tl.constexpr,
    MASKED: tl.constexpr, INTERVALS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Everything is transposed here: [WIDTH, HEIGHT], keys down, queries across."""
    for entry in range(begin, end):
        rows = tl.load(others + entry) * HEIGHT + tl.arange(0, HEIGHT)
        q = _rows_of(query, rows, queries, features, FEATURES, False)
        g = _rows_of(gradient, rows, queries, values, VALUES, False)
        sums = tl.load(lse + rows, rows < queries, float("inf"))
        weighed = tl.load(delta + rows, rows < queries, 0.0)
        energies = tl.dot(k, tl.trans(q), input_precision=PRECISION) * scale
        if NOISE:
            energies += gumbel(state, tl.load(places + rows, rows < queries, 0), j, True) * share
        if MASKED:
            shown = _shown(table, tl.load(masks + entry), INTERVALS, True, HEIGHT, WIDTH)
            energies = tl.where(shown, energies, -float("inf"))
        weights = tl.where(there[:, None], tl.exp2(energies - sums[None, :]), 0.0)
        by_value = tl.dot(weights.to(g.dtype), g, by_value, input_precision=PRECISION)
        slopes = weights * (tl.dot(v, tl.trans(g), input_precision=PRECISION) - weighed[None, :])
        by_key = tl.dot(slopes.to(q.dtype), q, by_key, input_precision=PRECISION)
    return by_key, by_value


@triton.jit(do_not_specialize=LENGTHS[1:])  # where queries come in 16s, it masks less
def key_gradient(
    query, key, value, gradient, lse, delta, result, value_result, part_result, part_value, visible, visible_rows,
    tiles, begins, middles, ends, slots, leads, others, masks, table,
    heavy_query, heavy_gradient, heavy_lse, heavy_delta, heavy_starts, heavy_others, heavy_masks,
    heavy_table, heavy_places, queries, heavy_queries, keys, features, values, parts, scale, back,
    states, places, key_places, share, NOISE: tl.constexpr, VISIBLE: tl.constexpr, HEAVY: tl.constexpr,
    INTERVALS: tl.constexpr, ONE_LOOP: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """∂k [G, S, D] and ∂value [G, S, F]; of a job that is a part, float32 [G, parts, WIDTH, …]. With HEAVY there are
    queries that stand apart (dot.py); the first job of a tile has them too."""
    job, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    slot, tile, inside = tl.load(slots + job), tl.load(tiles + job), tl.arange(0, WIDTH)
    columns = tile * WIDTH + inside
    k = _rows_of(key + row * keys * features, columns, keys, features, FEATURES, False)
    v = _rows_of(value + row * keys * values, columns, keys, values, VALUES, False)
    there = columns < keys
    if VISIBLE:
        there = there & (tl.load(visible + tl.load(visible_rows + row) * keys + columns, there, 0) != 0)
    state, j = _noise_of(states, key_places, row, columns, keys, NOISE)
    query += row * queries * features
    gradient += row * queries * values
    lse, delta = lse + row * queries, delta + row * queries
    by_key = tl.zeros((WIDTH, FEATURES), tl.float32)
    by_value = tl.zeros((WIDTH, VALUES), tl.float32)
    begin, middle, end = tl.load(begins + job), tl.load(middles + job), tl.load(ends + job)
    if not ONE_LOOP:
        by_key, by_value = _key_stretch(
            k, v, there, query, gradient, lse, delta, others, masks, table, by_key, by_value, begin, middle,
            queries, features, values, scale, state, places, j, share, NOISE, False, INTERVALS,
            HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
        )  # fmt: skip
        begin = middle
    by_key, by_value = _key_stretch(
        k, v, there, query, gradient, lse, delta, others, masks, table, by_key, by_value, begin, end,
        queries, features, values, scale, state, places, j, share, NOISE, True, INTERVALS,
        HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
    )  # fmt: skip
    if HEAVY:
        heavy_query += row * heavy_queries * features
        heavy_gradient += row * heavy_queries * values
        heavy_lse, heavy_delta = heavy_lse + row * heavy_queries, heavy_delta + row * heavy_queries
        begin = tl.load(heavy_starts + tile)
        lead = tl.load(leads + job) != 0
        end = tl.where(lead, tl.load(heavy_starts + tile + 1), begin)
        by_key, by_value = _key_stretch(  # they are few: one loop takes those with and without a mask
            k, v, there, heavy_query, heavy_gradient, heavy_lse, heavy_delta, heavy_others, heavy_masks, heavy_table,
            by_key, by_value, begin, end, heavy_queries, features, values, scale,
            state, heavy_places, j, share, NOISE, True, INTERVALS, HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
        )  # fmt: skip
    if slot < 0:
        _put(result + row * keys * features, by_key * back, columns, keys, features, FEATURES)
        _put(value_result + row * keys * values, by_value, columns, keys, values, VALUES)
    else:
        place = (row * parts + slot) * WIDTH
        _put(part_result + place * features, by_key * back, inside, WIDTH, features, FEATURES)
        _put(part_value + place * values, by_value, inside, WIDTH, values, VALUES)
