"""The best few keys of each query, found tile by tile: O(T·k) memory, no gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_access import Settings, TileAccess
from regard.core.kernels.residues import blank, ungroup
from regard.core.scores import wide
from regard.runtime.transforms import transform_of

_FEW = 8  # up to here a pass for each is faster than sorting


@torch.no_grad()
def best_weights(
    settings: Settings, query: Tensor, key: Tensor, vector: Tensor | None, lse: Tensor | None, k: int
) -> tuple[Tensor, Tensor]:
    """(weights, positions) [G, T, k]: descending, ties to the lower position; unused slots 0 and −1."""
    values, positions = _best(settings, query, key, vector, lse, k)
    unused = ~(values > 0)
    return values.masked_fill(unused, 0), positions.masked_fill(unused, -1)


@torch.no_grad()
def best_energy(settings: Settings, query: Tensor, key: Tensor, vector: Tensor | None) -> Tensor:
    """int64 [G, T]: the key with the highest energy (ties: the first); −1 where there is nothing to look at."""
    return _best(settings, query, key, vector, None, 1, raw=True)[1][..., 0]


def _best(
    settings: Settings, query: Tensor, key: Tensor, vector: Tensor | None, lse: Tensor | None, k: int, raw: bool = False
) -> tuple[Tensor, Tensor]:
    values = positions = None
    for part in settings.parts:
        tiled = TileAccess(settings, part, query, key, vector)
        part_values, part_positions = _best_of_part(tiled, lse, k, raw)
        if values is None or positions is None:
            values, positions = part_values, part_positions
        else:
            values, positions = torch.cat([values, part_values], -1), torch.cat([positions, part_positions], -1)
            ascending = positions.argsort(dim=-1)
            values, positions = first(values.gather(-1, ascending), positions.gather(-1, ascending), k)
    assert values is not None and positions is not None
    return values, positions


def _best_of_part(tiled: TileAccess, lse: Tensor | None, k: int, raw: bool) -> tuple[Tensor, Tensor]:
    ends = None
    if lse is not None:
        ends = tiled.by_query(lse.masked_fill(lse == -torch.inf, torch.inf)[..., None])
    values = blank(tiled.query, k, -torch.inf, wide(tiled.query[:0]).dtype)
    positions = blank(tiled.query, k, -1, torch.int64)
    for tile in (*tiled.part.tiles, *tiled.part.heavy_tiles):
        for chunk in tiled.chunks(tile):
            q, keys = tiled.rows_of(tiled.query, tile, chunk), tiled.keys_of(tiled.key, tile, chunk)
            found = tiled.energies(tile, chunk, q, keys)  # [B, R, C]
            if not raw and ends is None:
                found = tiled.settings.normalizer.weigh(found)
            elif not raw:
                found = found.sub_(tiled.rows_of(ends, tile, chunk)).exp_()  # type: ignore[arg-type]
            _, j = tiled.positions(tile, chunk, tile.spans)  # [classes, 1, 1, C]
            where = j.expand(-1, chunk[1].stop - chunk[1].start, found.shape[1], -1).flatten(0, 1)
            best, at = first(found, where, k)
            tiled.put_rows(values, tile, chunk, best)
            tiled.put_rows(positions, tile, chunk, at.masked_fill(best == -torch.inf, -1))
    return ungroup(values, tiled.queries, tiled.offset), ungroup(positions, tiled.queries, tiled.offset)


def first(values: Tensor, positions: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values with their positions, which ascend: ties to the lower one; filled up with −inf and −1."""
    order = _largest(values, min(k, values.shape[-1]))
    values, positions = values.gather(-1, order), positions.gather(-1, order)
    missing = k - values.shape[-1]
    if missing > 0:
        values = torch.nn.functional.pad(values, (0, missing), value=-torch.inf)
        positions = torch.nn.functional.pad(positions, (0, missing), value=-1)
    return values, positions


def _largest(values: Tensor, k: int) -> Tensor:
    """Where the k largest values are, descending, ties to the first: k passes for few, one sort for many."""
    if k > _FEW or not k or transform_of(values) is not None:  # a transform has no rule for `scatter_`
        return values.argsort(dim=-1, descending=True, stable=True)[..., :k]
    order = [values.argmax(-1, keepdim=True)]
    if k > 1:
        values = values.clone()
    for _ in range(k - 1):
        values.scatter_(-1, order[-1], -torch.inf)
        # What was taken is −inf now, as hidden keys are: of several −inf the first that was not taken counts.
        order.append(values.argmax(-1, keepdim=True))
    return torch.cat(order, -1)
