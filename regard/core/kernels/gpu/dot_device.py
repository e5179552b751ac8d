"""Dot-product attention along lists of blocks, on the device: softmax(scale · q kᵀ) value, and its gradients.

G rows of the batch, T queries, S keys, D features of keys, F features of values. A *job* is a range of entries in the
list of one tile (jobs.py). Most tiles are one job, which writes the final result. A tile with far more blocks than
others, such as one of global positions, is split into several jobs, so that the others need not wait for it: these
write partial results, which are merged afterwards.

In each job the blocks without a mask come first, then those with one, and each kind has its own loop. With ONE_LOOP one
loop takes both: that is half the code to compile, for kernels that spend little of their time on masks. Energies are in
units of log 2, for exp2.

With NOISE, `noise_scale` times the Gumbel noise of positions `query_positions` and `key_positions` is added to the
energies.

    p = 2^(e − lse),   ∂e = p (∂c valueᵀ − δ),   ∂q = scale ∂e k,   ∂k = scale ∂eᵀ q,   ∂value = pᵀ ∂c
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.gpu.noise_device import gumbel

LENGTHS = ["queries", "heavy_queries", "keys", "parts"]
"""arguments that change from call to call: kernels are compiled once for all their values"""


@triton.jit
def _load_rows(base, indices, size, width, FEATURES: tl.constexpr, EVEN: tl.constexpr):
    """Load [N, FEATURES] of states [size, width], 0 out of bounds; with EVEN all indices are in bounds."""
    d = tl.arange(0, FEATURES)
    pointers = base + indices[:, None].to(tl.int64) * width + d[None, :]
    if EVEN:
        return tl.load(pointers, (d < width)[None, :], 0.0)
    else:
        return tl.load(pointers, (indices < size)[:, None] & (d < width)[None, :], 0.0)


@triton.jit
def _store_rows(base, states, indices, size, width, FEATURES: tl.constexpr):
    """Store [N, FEATURES] into states [size, width], except what is out of bounds."""
    d = tl.arange(0, FEATURES)
    pointers = base + indices[:, None].to(tl.int64) * width + d[None, :]
    tl.store(pointers, states.to(base.dtype.element_ty), (indices < size)[:, None] & (d < width)[None, :])


@triton.jit
def _block_mask(table, mask, INTERVALS: tl.constexpr, ACROSS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    """Return the block's mask, bool [HEIGHT, WIDTH], or with ACROSS [WIDTH, HEIGHT]; True: the query may see the key.

    With INTERVALS, the table has an interval of keys for each query. A negative `mask` hides nothing."""
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
def _masked(
    energies, entry, masks, table, visible, columns, keys,
    VISIBLE: tl.constexpr, MASKED: tl.constexpr, INTERVALS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Return energies [HEIGHT, WIDTH] with −inf where the block's mask or padding hides a key."""
    if MASKED:
        mask = _block_mask(table, tl.load(masks + entry), INTERVALS, False, HEIGHT, WIDTH)
        energies = tl.where(mask, energies, -float("inf"))
    if VISIBLE:
        visible_keys = tl.load(visible + columns, columns < keys, 0) != 0
        energies = tl.where(visible_keys[None, :], energies, -float("inf"))
    return energies


@triton.jit
def _noise_inputs(states, positions, row, rows, queries, NOISE: tl.constexpr):
    """Return (noise state of the row, positions of the queries or keys); placeholders without NOISE."""
    if NOISE:
        return tl.load(states + row), tl.load(positions + rows, rows < queries, 0)
    else:
        return 0, rows


@triton.jit
def _forward_entries(
    q, key, value, visible, others, masks, table, highest, total, context_sum, begin, end,
    keys, features, values, scale, state, query_positions, key_positions, noise_scale, NOISE: tl.constexpr,
    VISIBLE: tl.constexpr, MASKED: tl.constexpr, INTERVALS: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Update an online softmax with entries begin … end − 1 of the list."""
    for entry in range(begin, end):
        columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
        k = _load_rows(key, columns, keys, features, FEATURES, not MASKED)
        energies = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        if NOISE:
            j = tl.load(key_positions + columns, columns < keys, 0)
            energies += gumbel(state, query_positions, j, False) * noise_scale
        energies = _masked(
            energies, entry, masks, table, visible, columns, keys, VISIBLE, MASKED, INTERVALS, HEIGHT, WIDTH
        )
        higher = tl.maximum(highest, tl.max(energies, 1))
        finite = tl.where(higher == -float("inf"), 0.0, higher) if MASKED or VISIBLE else higher
        weights = tl.exp2(energies - finite[:, None])
        rescale = tl.exp2(highest - finite)
        total = total * rescale + tl.sum(weights, 1)
        v = _load_rows(value, columns, keys, values, VALUES, not MASKED)
        context_sum = tl.dot(weights.to(v.dtype), v, context_sum * rescale[:, None], input_precision=PRECISION)
        highest = higher
    return highest, total, context_sum


@triton.jit(do_not_specialize=LENGTHS)
def forward(
    query, key, value, context, lse, part_context, part_lse,
    visible, visible_rows, tiles, begins, middles, ends, slots, others, masks, table, queries, keys, features, parts,
    states, query_positions, key_positions, values, scale, noise_scale,
    NOISE: tl.constexpr, VISIBLE: tl.constexpr, INTERVALS: tl.constexpr, ONE_LOOP: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute context [G, T, F] and lse [G, T]; for partial jobs, [G, parts, HEIGHT, F] and [G, parts, HEIGHT]."""
    job, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    slot, inside = tl.load(slots + job), tl.arange(0, HEIGHT)
    rows = tl.load(tiles + job) * HEIGHT + inside
    q = _load_rows(query + row * queries * features, rows, queries, features, FEATURES, False)
    key += row * keys * features
    value += row * keys * values
    if VISIBLE:
        visible += tl.load(visible_rows + row) * keys
    state, row_positions = _noise_inputs(states, query_positions, row, rows, queries, NOISE)
    highest = tl.full((HEIGHT,), -float("inf"), tl.float32)
    total = tl.zeros((HEIGHT,), tl.float32)
    context_sum = tl.zeros((HEIGHT, VALUES), tl.float32)
    begin, middle, end = tl.load(begins + job), tl.load(middles + job), tl.load(ends + job)
    if not ONE_LOOP:
        highest, total, context_sum = _forward_entries(
            q, key, value, visible, others, masks, table, highest, total, context_sum, begin, middle,
            keys, features, values, scale, state, row_positions, key_positions, noise_scale,
            NOISE, VISIBLE, False, INTERVALS, HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
        )  # fmt: skip
        begin = middle
    highest, total, context_sum = _forward_entries(
        q, key, value, visible, others, masks, table, highest, total, context_sum, begin, end,
        keys, features, values, scale, state, row_positions, key_positions, noise_scale,
        NOISE, VISIBLE, True, INTERVALS, HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
    )  # fmt: skip
    empty = total == 0
    context_sum = context_sum / tl.where(empty, 1.0, total)[:, None]
    row_lse = tl.where(empty, -float("inf"), highest + tl.log2(tl.where(empty, 1.0, total)))
    if slot < 0:
        _store_rows(context + row * queries * values, context_sum, rows, queries, values, VALUES)
        tl.store(lse + row * queries + rows, row_lse, rows < queries)
    else:
        _store_rows(part_context + (row * parts + slot) * HEIGHT * values, context_sum, inside, HEIGHT, values, VALUES)
        tl.store(part_lse + (row * parts + slot) * HEIGHT + inside, row_lse)


@triton.jit
def _query_gradient_entries(
    q, g, row_lse, row_delta, key, value, visible, others, masks, table, grad_query, begin, end,
    keys, features, values, scale, state, query_positions, key_positions, noise_scale, NOISE: tl.constexpr,
    VISIBLE: tl.constexpr, MASKED: tl.constexpr, INTERVALS: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    for entry in range(begin, end):
        columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
        k = _load_rows(key, columns, keys, features, FEATURES, not MASKED)
        v = _load_rows(value, columns, keys, values, VALUES, not MASKED)
        energies = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        if NOISE:
            j = tl.load(key_positions + columns, columns < keys, 0)
            energies += gumbel(state, query_positions, j, False) * noise_scale
        energies = _masked(
            energies, entry, masks, table, visible, columns, keys, VISIBLE, MASKED, INTERVALS, HEIGHT, WIDTH
        )
        weights = tl.exp2(energies - row_lse[:, None])
        energy_grad = weights * (tl.dot(g, tl.trans(v), input_precision=PRECISION) - row_delta[:, None])
        grad_query = tl.dot(energy_grad.to(k.dtype), k, grad_query, input_precision=PRECISION)
    return grad_query


@triton.jit(do_not_specialize=LENGTHS)
def query_gradient(
    query, key, value, gradient, lse, delta, result, part_result, gradient_scale,
    visible, visible_rows, tiles, begins, middles, ends, slots, others, masks, table, queries, keys, features, parts,
    states, query_positions, key_positions, values, scale, noise_scale,
    NOISE: tl.constexpr, VISIBLE: tl.constexpr, INTERVALS: tl.constexpr, ONE_LOOP: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute ∂q [G, T, D]; for partial jobs, float32 [G, parts, HEIGHT, D]. ∂q = gradient_scale · ∂e k."""
    job, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    slot, inside = tl.load(slots + job), tl.arange(0, HEIGHT)
    rows = tl.load(tiles + job) * HEIGHT + inside
    q = _load_rows(query + row * queries * features, rows, queries, features, FEATURES, False)
    g = _load_rows(gradient + row * queries * values, rows, queries, values, VALUES, False)
    row_lse = tl.load(lse + row * queries + rows, rows < queries, float("inf"))
    row_delta = tl.load(delta + row * queries + rows, rows < queries, 0.0)
    key += row * keys * features
    value += row * keys * values
    if VISIBLE:
        visible += tl.load(visible_rows + row) * keys
    state, row_positions = _noise_inputs(states, query_positions, row, rows, queries, NOISE)
    grad_query = tl.zeros((HEIGHT, FEATURES), tl.float32)
    begin, middle, end = tl.load(begins + job), tl.load(middles + job), tl.load(ends + job)
    if not ONE_LOOP:
        grad_query = _query_gradient_entries(
            q, g, row_lse, row_delta, key, value, visible, others, masks, table, grad_query, begin, middle,
            keys, features, values, scale, state, row_positions, key_positions, noise_scale,
            NOISE, VISIBLE, False, INTERVALS, HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
        )  # fmt: skip
        begin = middle
    grad_query = _query_gradient_entries(
        q, g, row_lse, row_delta, key, value, visible, others, masks, table, grad_query, begin, end,
        keys, features, values, scale, state, row_positions, key_positions, noise_scale,
        NOISE, VISIBLE, True, INTERVALS, HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
    )  # fmt: skip
    if slot < 0:
        _store_rows(result + row * queries * features, grad_query * gradient_scale, rows, queries, features, FEATURES)
    else:
        target = part_result + (row * parts + slot) * HEIGHT * features
        _store_rows(target, grad_query * gradient_scale, inside, HEIGHT, features, FEATURES)


@triton.jit
def _key_gradient_entries(
    k, v, is_visible, query, gradient, lse, delta, others, masks, table, grad_key, grad_value, begin, end,
    queries, features, values, scale, state, query_positions, j, noise_scale, NOISE: tl.constexpr,
    MASKED: tl.constexpr, INTERVALS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Add entries begin … end − 1 of the list to ∂k and ∂value.

    All blocks are transposed here, [WIDTH, HEIGHT]: rows are keys, columns are queries."""
    for entry in range(begin, end):
        rows = tl.load(others + entry) * HEIGHT + tl.arange(0, HEIGHT)
        q = _load_rows(query, rows, queries, features, FEATURES, False)
        g = _load_rows(gradient, rows, queries, values, VALUES, False)
        row_lse = tl.load(lse + rows, rows < queries, float("inf"))
        row_delta = tl.load(delta + rows, rows < queries, 0.0)
        energies = tl.dot(k, tl.trans(q), input_precision=PRECISION) * scale
        if NOISE:
            energies += gumbel(state, tl.load(query_positions + rows, rows < queries, 0), j, True) * noise_scale
        if MASKED:
            mask = _block_mask(table, tl.load(masks + entry), INTERVALS, True, HEIGHT, WIDTH)
            energies = tl.where(mask, energies, -float("inf"))
        weights = tl.where(is_visible[:, None], tl.exp2(energies - row_lse[None, :]), 0.0)
        grad_value = tl.dot(weights.to(g.dtype), g, grad_value, input_precision=PRECISION)
        energy_grad = weights * (tl.dot(v, tl.trans(g), input_precision=PRECISION) - row_delta[None, :])
        grad_key = tl.dot(energy_grad.to(q.dtype), q, grad_key, input_precision=PRECISION)
    return grad_key, grad_value


@triton.jit
def _key_gradient_job(
    k, v, is_visible, query, gradient, lse, delta, others, masks, table, grad_key, grad_value, begin, middle, end,
    queries, features, values, scale, state, query_positions, j, noise_scale, NOISE: tl.constexpr,
    INTERVALS: tl.constexpr, ONE_LOOP: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Add the entries of a job: those before `middle` need no mask."""
    if not ONE_LOOP:
        grad_key, grad_value = _key_gradient_entries(
            k, v, is_visible, query, gradient, lse, delta, others, masks, table, grad_key, grad_value, begin, middle,
            queries, features, values, scale, state, query_positions, j, noise_scale, NOISE, False, INTERVALS,
            HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
        )  # fmt: skip
        begin = middle
    return _key_gradient_entries(
        k, v, is_visible, query, gradient, lse, delta, others, masks, table, grad_key, grad_value, begin, end,
        queries, features, values, scale, state, query_positions, j, noise_scale, NOISE, True, INTERVALS,
        HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
    )  # fmt: skip


@triton.jit(do_not_specialize=LENGTHS[1:])  # specialized on `queries`: it masks less where they are a multiple of 16
def key_gradient(
    query, key, value, gradient, lse, delta, result, value_result, part_result, part_value, gradient_scale,
    heavy_query, heavy_gradient, heavy_lse, heavy_delta, heavy_starts, heavy_others, heavy_masks, heavy_table,
    heavy_positions, heavy_queries, leads,
    visible, visible_rows, tiles, begins, middles, ends, slots, others, masks, table, queries, keys, features, parts,
    states, query_positions, key_positions, values, scale, noise_scale,
    NOISE: tl.constexpr, VISIBLE: tl.constexpr, HEAVY: tl.constexpr, INTERVALS: tl.constexpr, ONE_LOOP: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute ∂k [G, S, D] and ∂value [G, S, F]; for partial jobs, float32 [G, parts, WIDTH, …]. With HEAVY there
    are heavy queries (query_groups.py): the first job of each tile of keys adds them."""
    job, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    slot, tile, inside = tl.load(slots + job), tl.load(tiles + job), tl.arange(0, WIDTH)
    columns = tile * WIDTH + inside
    k = _load_rows(key + row * keys * features, columns, keys, features, FEATURES, False)
    v = _load_rows(value + row * keys * values, columns, keys, values, VALUES, False)
    is_visible = columns < keys
    if VISIBLE:
        is_visible = is_visible & (tl.load(visible + tl.load(visible_rows + row) * keys + columns, is_visible, 0) != 0)
    state, j = _noise_inputs(states, key_positions, row, columns, keys, NOISE)
    query += row * queries * features
    gradient += row * queries * values
    lse, delta = lse + row * queries, delta + row * queries
    grad_key = tl.zeros((WIDTH, FEATURES), tl.float32)
    grad_value = tl.zeros((WIDTH, VALUES), tl.float32)
    grad_key, grad_value = _key_gradient_job(
        k, v, is_visible, query, gradient, lse, delta, others, masks, table, grad_key, grad_value,
        tl.load(begins + job), tl.load(middles + job), tl.load(ends + job), queries, features, values, scale, state,
        query_positions, j, noise_scale, NOISE, INTERVALS, ONE_LOOP, HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
    )  # fmt: skip
    if HEAVY:
        heavy_query += row * heavy_queries * features
        heavy_gradient += row * heavy_queries * values
        heavy_lse, heavy_delta = heavy_lse + row * heavy_queries, heavy_delta + row * heavy_queries
        begin = tl.load(heavy_starts + tile)
        lead = tl.load(leads + job) != 0
        end = tl.where(lead, tl.load(heavy_starts + tile + 1), begin)
        # Heavy queries are few: one loop takes blocks with and without a mask.
        grad_key, grad_value = _key_gradient_entries(
            k, v, is_visible, heavy_query, heavy_gradient, heavy_lse, heavy_delta, heavy_others, heavy_masks,
            heavy_table, grad_key, grad_value, begin, end, heavy_queries, features, values, scale,
            state, heavy_positions, j, noise_scale, NOISE, True, INTERVALS, HEIGHT, WIDTH, FEATURES, VALUES, PRECISION,
        )  # fmt: skip
    if slot < 0:
        _store_rows(result + row * keys * features, grad_key * gradient_scale, columns, keys, features, FEATURES)
        _store_rows(value_result + row * keys * values, grad_value, columns, keys, values, VALUES)
    else:
        offset = (row * parts + slot) * WIDTH
        _store_rows(part_result + offset * features, grad_key * gradient_scale, inside, WIDTH, features, FEATURES)
        _store_rows(part_value + offset * values, grad_value, inside, WIDTH, values, VALUES)
