"""Which key hard attention chooses, along a pattern's blocks."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from regard.core.kernels.gpu import dot
from regard.core.kernels.gpu import hard_device as device
from regard.core.kernels.gpu.arrangement import Arrangement, arrangements_of
from regard.core.kernels.gpu.blocks import power
from regard.core.kernels.gpu.device import launch
from regard.core.kernels.gpu.dot import Part, Settings, one_loop, parts_of
from regard.runtime.device_guard import device_guard

NOWHERE = torch.iinfo(torch.int32).max


def choose(settings: Settings, query: Tensor, key: Tensor) -> Tensor:
    """query [G, T, D], key [G, S, D] → int64 [G, T]: the key of the highest energy, with noise if there is some, of
    equal ones the first; −1 where there is none."""
    arrangements = arrangements_of(settings.pattern, query.shape[1], key.shape[1], settings.position)
    with device_guard(query.device):
        found = [_term(settings, arranged, query, key) for arranged in arrangements]
    best, chosen = (torch.stack(parts, -2) for parts in zip(*found, strict=True))
    return _first_of_highest(best, chosen).long()


def _term(settings: Settings, arranged: Arrangement, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """(the highest energy, its key) of one term, both [G, T]"""
    settings = replace(settings, visible=arranged.visible_order(settings.visible))
    query, key = arranged.query_order(query).contiguous(), arranged.key_order(key).contiguous()
    places, key_places = arranged.query_places(query.device), arranged.key_places(query.device)
    light, heavy = parts_of(arranged.pattern, query.shape[1], key.shape[1], arranged.position, query.device)
    best, chosen = _part(settings, light, query, key, places, key_places)
    if heavy is not None:
        rows = heavy.rows
        best[:, rows], chosen[:, rows] = _part(settings, heavy, query[:, rows], key, places[rows], key_places)
    return arranged.as_queries(best), arranged.as_queries(chosen)


def _part(
    settings: Settings, part: Part, query: Tensor, key: Tensor, places: Tensor, key_places: Tensor
) -> tuple[Tensor, Tensor]:
    jobs, lists, (count, queries, features) = part.by_query, part.blocks.by_query, query.shape
    best = query.new_full((count, queries), -torch.inf, dtype=torch.float32)
    chosen = torch.full_like(best, -1, dtype=torch.int32)
    part_best = best.new_empty(count, jobs.parts, dot.HEIGHT)
    part_chosen = chosen.new_empty(count, jobs.parts, dot.HEIGHT)
    visible, noise = settings.visible, settings.noise
    shown = rows = jobs.tiles  # anything, where nothing is hidden
    if visible is not None:
        shown, rows = visible.tensor.to(torch.uint8), visible.numbers(count)
    if jobs.count and count:
        launch(
            device.choose, (jobs.count, count), query, key, best, chosen, part_best, part_chosen, shown, rows,
            jobs.tiles, jobs.begins, jobs.middles, jobs.ends, jobs.slots, lists.others, lists.masks, part.masks,
            queries, key.shape[1], features, jobs.parts, settings.scale,
            places if noise is None else noise.states, places, key_places,
            NOISE=noise is not None, VISIBLE=visible is not None, INTERVALS=part.intervals,
            ONE_LOOP=one_loop(settings, query.dtype),
            HEIGHT=dot.HEIGHT, WIDTH=dot.WIDTH, FEATURES=power(features), PRECISION=settings.precision,
        )  # fmt: skip
        if jobs.cut is not None:
            jobs.cut.choose(part_best, part_chosen, best, chosen)
    return best, chosen


def _first_of_highest(best: Tensor, chosen: Tensor) -> Tensor:
    """[…, n, T] → […, T]: of the n keys that of the highest energy, of equal ones the first; −1 where there is none"""
    lower = (best < best.amax(-2, keepdim=True)) | (chosen < 0)
    first = chosen.masked_fill(lower, NOWHERE).amin(-2)
    return first.masked_fill(first == NOWHERE, -1)
