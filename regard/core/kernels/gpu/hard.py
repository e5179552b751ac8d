"""The choice of hard attention: the key of the highest energy, along the blocks of a pattern."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from regard.core.kernels.gpu import blocks
from regard.core.kernels.gpu import hard_device as device
from regard.core.kernels.gpu.arrangement import Arrangement, arrangements_of
from regard.core.kernels.gpu.blocks import next_power_of_two
from regard.core.kernels.gpu.device import launch
from regard.core.kernels.gpu.dot_problem import DotSettings, one_loop
from regard.core.kernels.gpu.query_groups import QueryGroup, query_groups_of
from regard.runtime.device_guard import device_guard

NOWHERE = torch.iinfo(torch.int32).max


def choose(settings: DotSettings, query: Tensor, key: Tensor) -> Tensor:
    """Return the key of the highest energy, int64 [G, T], for query [G, T, D] and key [G, S, D].

    Energies include the noise of the settings. Ties go to the first key; −1 where a query sees no key.
    """
    arrangements = arrangements_of(settings.pattern, query.shape[1], key.shape[1], settings.position)
    with device_guard(query.device):
        by_term = [_term(settings, arrangement, query, key) for arrangement in arrangements]
    best, chosen = (torch.stack(terms, -2) for terms in zip(*by_term, strict=True))
    return _first_of_highest(best, chosen).long()


def _term(settings: DotSettings, arrangement: Arrangement, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Return (the highest energy, its key) of one term, both [G, T]."""
    settings = replace(settings, visible=arrangement.visible_order(settings.visible))
    query, key = arrangement.query_order(query).contiguous(), arrangement.key_order(key).contiguous()
    where, sizes = query.device, (query.shape[1], key.shape[1])
    query_positions, key_positions = arrangement.query_positions(where), arrangement.key_positions(where)
    light, heavy = query_groups_of(arrangement.pattern, *sizes, arrangement.position, where)
    best, chosen = _group(settings, light, query, key, query_positions, key_positions)
    if heavy is not None:
        rows = heavy.rows
        best[:, rows], chosen[:, rows] = _group(
            settings, heavy, query[:, rows], key, query_positions[rows], key_positions
        )
    return arrangement.as_queries(best), arrangement.as_queries(chosen)


def _group(
    settings: DotSettings, group: QueryGroup, query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor
) -> tuple[Tensor, Tensor]:
    """Return (the highest energy, its key) of one group of queries, both [G, T]."""
    jobs, lists, (count, queries, features) = group.by_query, group.blocks.by_query, query.shape
    best = query.new_full((count, queries), -torch.inf, dtype=torch.float32)
    chosen = torch.full_like(best, -1, dtype=torch.int32)
    part_best = best.new_empty(count, jobs.parts, blocks.HEIGHT)
    part_chosen = chosen.new_empty(count, jobs.parts, blocks.HEIGHT)
    visible, noise = settings.visible, settings.noise
    visible_keys = visible_rows = jobs.tiles  # placeholders if no key is hidden
    if visible is not None:
        visible_keys, visible_rows = visible.tensor.to(torch.uint8), visible.numbers(count)
    if jobs.count and count:
        launch(
            device.choose, (jobs.count, count), query, key, best, chosen, part_best, part_chosen,
            visible_keys, visible_rows, jobs.tiles, jobs.begins, jobs.middles, jobs.ends, jobs.slots,
            lists.others, lists.masks, group.masks,
            queries, key.shape[1], features, jobs.parts, settings.scale,
            query_positions if noise is None else noise.states, query_positions, key_positions,
            NOISE=noise is not None, VISIBLE=visible is not None, INTERVALS=group.intervals,
            ONE_LOOP=one_loop(settings, query.dtype),
            HEIGHT=blocks.HEIGHT, WIDTH=blocks.WIDTH, FEATURES=next_power_of_two(features),
            PRECISION=settings.precision,
        )  # fmt: skip
        if jobs.cut is not None:
            jobs.cut.choose(part_best, part_chosen, best, chosen)
    return best, chosen


def _first_of_highest(best: Tensor, chosen: Tensor) -> Tensor:
    """Return the key of the highest energy, […, n, T] → […, T]; ties go to the first key; −1 where there is none."""
    lower = (best < best.amax(-2, keepdim=True)) | (chosen < 0)
    first = chosen.masked_fill(lower, NOWHERE).amin(-2)
    return first.masked_fill(first == NOWHERE, -1)
