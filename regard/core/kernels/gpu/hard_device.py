"""Hard dot-product attention along lists of blocks, on the device: for each query the key of the highest energy.

Jobs, lists, masks and noise are those of dot_device.py; the noise is not scaled.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.gpu.dot_device import _load_rows, _masked, _noise_inputs
from regard.core.kernels.gpu.noise_device import gumbel

LENGTHS = ["queries", "keys", "parts"]
"""arguments that change from call to call: kernels are compiled once for all their values"""


@triton.jit
def _choose_entries(
    q, key, visible, others, masks, table, best, chosen, begin, end, keys, features, scale,
    state, query_positions, key_positions,
    NOISE: tl.constexpr, VISIBLE: tl.constexpr, MASKED: tl.constexpr, INTERVALS: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Update the highest energy and the position of its key with entries begin … end − 1; ties go to the first key."""
    for entry in range(begin, end):
        columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
        k = _load_rows(key, columns, keys, features, FEATURES, not MASKED)
        energies = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        j = tl.load(key_positions + columns, columns < keys, 2147483647)
        if NOISE:
            energies += gumbel(state, query_positions, j, False)
        energies = tl.where(energies == energies, energies, float("inf"))  # a NaN is chosen, so that it shows
        energies = _masked(
            energies, entry, masks, table, visible, columns, keys, VISIBLE, MASKED, INTERVALS, HEIGHT, WIDTH
        )
        highest = tl.max(energies, 1)
        position = tl.min(tl.where(energies == highest[:, None], j[None, :], 2147483647), 1)
        better = (highest > best) | ((highest == best) & (position < chosen) & (highest > -float("inf")))
        best, chosen = tl.where(better, highest, best), tl.where(better, position, chosen)
    return best, chosen


@triton.jit(do_not_specialize=LENGTHS)
def choose(
    query, key, best_result, chosen_result, part_best, part_chosen, visible, visible_rows,
    tiles, begins, middles, ends, slots, others, masks, table, queries, keys, features, parts, scale,
    states, query_positions, key_positions,
    NOISE: tl.constexpr, VISIBLE: tl.constexpr, INTERVALS: tl.constexpr, ONE_LOOP: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute the highest energy [G, T] and the position of its key, int32, −1 if a query sees none; for partial jobs,
    [G, parts, HEIGHT]."""
    job, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    slot, inside = tl.load(slots + job), tl.arange(0, HEIGHT)
    rows = tl.load(tiles + job) * HEIGHT + inside
    q = _load_rows(query + row * queries * features, rows, queries, features, FEATURES, False)
    state, row_positions = _noise_inputs(states, query_positions, row, rows, queries, NOISE)
    key += row * keys * features
    if VISIBLE:
        visible += tl.load(visible_rows + row) * keys
    best = tl.full((HEIGHT,), -float("inf"), tl.float32)
    chosen = tl.full((HEIGHT,), -1, tl.int32)
    begin, middle, end = tl.load(begins + job), tl.load(middles + job), tl.load(ends + job)
    if not ONE_LOOP:
        best, chosen = _choose_entries(
            q, key, visible, others, masks, table, best, chosen, begin, middle, keys, features, scale,
            state, row_positions, key_positions, NOISE, VISIBLE, False, INTERVALS, HEIGHT, WIDTH, FEATURES, PRECISION,
        )  # fmt: skip
        begin = middle
    best, chosen = _choose_entries(
        q, key, visible, others, masks, table, best, chosen, begin, end, keys, features, scale,
        state, row_positions, key_positions, NOISE, VISIBLE, True, INTERVALS, HEIGHT, WIDTH, FEATURES, PRECISION,
    )  # fmt: skip
    if slot < 0:
        tl.store(best_result + row * queries + rows, best, rows < queries)
        tl.store(chosen_result + row * queries + rows, chosen, rows < queries)
    else:
        tl.store(part_best + (row * parts + slot) * HEIGHT + inside, best)
        tl.store(part_chosen + (row * parts + slot) * HEIGHT + inside, chosen)
