"""The choice of hard attention: the key of the highest energy, along the blocks of a pattern.

Jobs, lists, masks and noise are those of dot_device.py; energies are not in units of log 2, and noise is not scaled.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.core.kernels.gpu import blocks
from regard.core.kernels.gpu.dot import dot_terms
from regard.core.kernels.gpu.dot_device import _load_rows, _masked, _noise_inputs
from regard.core.kernels.gpu.dot_problem import DotProblem, DotSettings
from regard.core.kernels.gpu.launch import launch
from regard.core.kernels.gpu.noise_device import gumbel
from regard.core.kernels.gpu.tile_size import tile_width
from regard.runtime.device_guard import device_guard

NOWHERE = torch.iinfo(torch.int32).max


def choose(settings: DotSettings, query: Tensor, key: Tensor) -> Tensor:
    """Return the key of the highest energy, int64 [G, T], for query [G, T, D] and key [G, S, D]. Energies include the
    noise of the settings. Ties go to the first key; −1 where a query sees no key."""
    query, key = query.contiguous(), key.contiguous()
    with device_guard(query.device):
        terms = dot_terms(settings, query, key, key, with_positions=True)
        by_term = [term.by_groups(_choices) for term in terms]
    best, chosen = (torch.stack(results, -2) for results in zip(*by_term, strict=True))  # [G, n, T]
    lower = (best < best.amax(-2, keepdim=True)) | (chosen < 0)
    first = chosen.masked_fill(lower, NOWHERE).amin(-2)
    return first.masked_fill(first == NOWHERE, -1).long()


def _choices(problem: DotProblem) -> tuple[Tensor, Tensor]:
    """Return (the highest energy, its key) of one group of queries, both [G, T]."""
    jobs, query, count = problem.group.by_query, problem.query, problem.rows
    best = query.new_full((count, problem.queries), -torch.inf, dtype=torch.float32)
    chosen = torch.full_like(best, -1, dtype=torch.int32)
    part_best = best.new_empty(count, jobs.parts, blocks.HEIGHT)
    part_chosen = chosen.new_empty(count, jobs.parts, blocks.HEIGHT)
    launch(
        _choose, (jobs.count, count), query, problem.key, problem.settings.scale,
        best, chosen, part_best, part_chosen, *problem.block_arguments(jobs, problem.group.blocks.by_query),
        FEATURES=tile_width(problem.features), **problem.block_options,
    )  # fmt: skip
    if jobs.split is not None:
        jobs.split.choose(part_best, part_chosen, best, chosen)
    return best, chosen


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
def _choose(
    query, key, scale, best_result, chosen_result, part_best, part_chosen,
    visible, visible_rows, tiles, begins, middles, ends, slots, others, masks, table, queries, keys, features, parts,
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
