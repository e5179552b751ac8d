"""The top k keys of each query, tile by tile: O(T·k) memory, no gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_access import TileAccess, TileSettings
from regard.core.kernels.residues import blank, ungroup
from regard.core.scores import at_least_float32
from regard.runtime.transforms import active_transform

_MAX_PASSES = 8  # the largest k for which k passes are faster than sorting


@torch.no_grad()
def best_weights(
    settings: TileSettings, query: Tensor, key: Tensor, vector: Tensor | None, lse: Tensor | None, k: int
) -> tuple[Tensor, Tensor]:
    """Return (weights, positions) [G, T, k], descending, ties to the lower position; unused slots are 0 and −1."""
    return without_unused(*_top_k(settings, query, key, vector, lse, k))


def without_unused(weights: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Return weights and positions with 0 and −1 in unused slots, which have no positive weight."""
    unused = ~(weights > 0)
    return weights.masked_fill(unused, 0), positions.masked_fill(unused, -1)


@torch.no_grad()
def best_key(settings: TileSettings, query: Tensor, key: Tensor, vector: Tensor | None) -> Tensor:
    """Return the key with the highest energy, int64 [G, T]; ties to the first; −1 where a query sees no key."""
    return _top_k(settings, query, key, vector, None, 1, raw=True)[1][..., 0]


def _top_k(
    settings: TileSettings,
    query: Tensor,
    key: Tensor,
    vector: Tensor | None,
    lse: Tensor | None,
    k: int,
    raw: bool = False,
) -> tuple[Tensor, Tensor]:
    values = positions = None
    for part in settings.parts:
        tiled = TileAccess(settings, part, query, key, vector)
        part_values, part_positions = _top_k_of_part(tiled, lse, k, raw)
        if values is None or positions is None:
            values, positions = part_values, part_positions
        else:
            values, positions = torch.cat([values, part_values], -1), torch.cat([positions, part_positions], -1)
            ascending = positions.argsort(dim=-1)
            values, positions = top_k(values.gather(-1, ascending), positions.gather(-1, ascending), k)
    assert values is not None and positions is not None
    return values, positions


def _top_k_of_part(tiled: TileAccess, lse: Tensor | None, k: int, raw: bool) -> tuple[Tensor, Tensor]:
    lse_by_class = None
    if lse is not None:
        lse_by_class = tiled.by_query(lse.masked_fill(lse == -torch.inf, torch.inf)[..., None])
    best_values = blank(tiled.query, k, -torch.inf, at_least_float32(tiled.query[:0]).dtype)
    best_positions = blank(tiled.query, k, -1, torch.int64)
    for tile in tiled.part.all_tiles:
        for chunk in tiled.chunks(tile):
            q, keys = tiled.rows_of(tiled.query, tile, chunk), tiled.keys_of(tiled.key, tile, chunk)
            values = tiled.energies(tile, chunk, q, keys)  # [B, R, C]
            if not raw and lse_by_class is None:
                values = tiled.settings.normalizer.weigh(values)
            elif not raw:
                values = values.sub_(tiled.rows_of(lse_by_class, tile, chunk)).exp_()  # type: ignore[arg-type]
            _, j = tiled.positions(tile, chunk, tile.spans)  # [classes, 1, 1, C]
            positions = j.expand(-1, chunk[1].stop - chunk[1].start, values.shape[1], -1).flatten(0, 1)
            tile_values, tile_positions = top_k(values, positions, k)
            tiled.put_rows(best_values, tile, chunk, tile_values)
            tiled.put_rows(best_positions, tile, chunk, tile_positions.masked_fill(tile_values == -torch.inf, -1))
    return ungroup(best_values, tiled.queries, tiled.offset), ungroup(best_positions, tiled.queries, tiled.offset)


def top_k(values: Tensor, positions: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest values with their positions. Positions ascend in the input, so ties go to the lower one;
    missing values are −inf and −1."""
    order = _argtop_k(values, min(k, values.shape[-1]))
    values, positions = values.gather(-1, order), positions.gather(-1, order)
    missing = k - values.shape[-1]
    if missing > 0:
        values = torch.nn.functional.pad(values, (0, missing), value=-torch.inf)
        positions = torch.nn.functional.pad(positions, (0, missing), value=-1)
    return values, positions


def _argtop_k(values: Tensor, k: int) -> Tensor:
    """Return the indices of the k largest values, descending, ties to the first, by k passes or a sort."""
    if k > _MAX_PASSES or not k or active_transform(values) is not None:  # a transform has no rule for `scatter_`
        return values.argsort(dim=-1, descending=True, stable=True)[..., :k]
    order = [values.argmax(-1, keepdim=True)]
    if k > 1:
        values = values.clone()
    for _ in range(k - 1):
        values.scatter_(-1, order[-1], -torch.inf)
        # Taken values are −inf now, as unused slots are; those come first (position −1), so no value is taken twice.
        order.append(values.argmax(-1, keepdim=True))
    return torch.cat(order, -1)
