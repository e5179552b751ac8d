"""Hard attention by products along lists of blocks, on the device: of each query the key of the highest energy.

Jobs, lists and masks are those of dot_device.py, and so is noise, of which nothing is taken off.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.gpu.dot_device import _noise_of, _rows_of, _seen
from regard.core.kernels.gpu.noise_device import gumbel

LENGTHS = ["queries", "keys", "parts"]
"""what changes from call to call: kernels are compiled once for all of them"""


@triton.jit
def _stretch(
    q, key, visible, others, masks, table, best, chosen, begin, end, keys, features, scale,
    state, at, key_places, NOISE: tl.constexpr, VISIBLE: tl.constexpr, MASKED: tl.constexpr, INTERVALS: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The highest energy over entries begin … end − 1 of the list, and at which position: of equal ones the first."""
    for entry in range(begin, end):
        columns = tl.load(others + entry) * WIDTH + tl.arange(0, WIDTH)
        k = _rows_of(key, columns, keys, features, FEATURES, not MASKED)
        energies = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        j = tl.load(key_places + columns, columns < keys, 2147483647)
        if NOISE:
            energies += gumbel(state, at, j, False)
        energies = tl.where(energies == energies, energies, float("inf"))  # what is no number is chosen, and tells so
        energies = _seen(
            energies, entry, masks, table, visible, columns, keys, VISIBLE, MASKED, INTERVALS, HEIGHT, WIDTH
        )
        highest = tl.max(energies, 1)
        where = tl.min(tl.where(energies == highest[:, None], j[None, :], 2147483647), 1)
        better = (highest > best) | ((highest == best) & (where < chosen) & (highest > -float("inf")))
        best, chosen = tl.where(better, highest, best), tl.where(better, where, chosen)
    return best, chosen


@triton.jit(do_not_specialize=LENGTHS)
def choose(
    query, key, best_into, chosen_into, part_best, part_chosen, visible, visible_rows,
    tiles, begins, middles, ends, slots, others, masks, table, queries, keys, features, parts, scale,
    states, places, key_places,
    NOISE: tl.constexpr, VISIBLE: tl.constexpr, INTERVALS: tl.constexpr, ONE_LOOP: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FEATURES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The highest energy [G, T] and the position of its key, int32, −1 where there is none; of a job that is a part,
    [G, parts, HEIGHT]."""
    job, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    slot, inside = tl.load(slots + job), tl.arange(0, HEIGHT)
    rows = tl.load(tiles + job) * HEIGHT + inside
    q = _rows_of(query + row * queries * features, rows, queries, features, FEATURES, False)
    state, at = _noise_of(states, places, row, rows, queries, NOISE)
    key += row * keys * features
    if VISIBLE:
        visible += tl.load(visible_rows + row) * keys
    best = tl.full((HEIGHT,), -float("inf"), tl.float32)
    chosen = tl.full((HEIGHT,), -1, tl.int32)
    begin, middle, end = tl.load(begins + job), tl.load(middles + job), tl.load(ends + job)
    if not ONE_LOOP:
        best, chosen = _stretch(
            q, key, visible, others, masks, table, best, chosen, begin, middle, keys, features, scale,
            state, at, key_places, NOISE, VISIBLE, False, INTERVALS, HEIGHT, WIDTH, FEATURES, PRECISION,
        )  # fmt: skip
        begin = middle
    best, chosen = _stretch(
        q, key, visible, others, masks, table, best, chosen, begin, end, keys, features, scale,
        state, at, key_places, NOISE, VISIBLE, True, INTERVALS, HEIGHT, WIDTH, FEATURES, PRECISION,
    )  # fmt: skip
    if slot < 0:
        tl.store(best_into + row * queries + rows, best, rows < queries)
        tl.store(chosen_into + row * queries + rows, chosen, rows < queries)
    else:
        tl.store(part_best + (row * parts + slot) * HEIGHT + inside, best)
        tl.store(part_chosen + (row * parts + slot) * HEIGHT + inside, chosen)
