"""A pattern as lists of blocks: what a kernel on a GPU walks along.

Queries and keys are cut into tiles; a block is a tile of queries by a tile of keys in which some pair may look. Blocks
are listed twice: tile of queries by tile of queries for the forward pass and for what flows back to queries, tile of
keys by tile of keys for what flows back to keys. In each list those come first all of whose pairs may look; of the
others each names a mask, and equal masks are kept once: a window has a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from regard.core.patterns import Pattern
from regard.core.spans import Spans, intersection, runs, union

ALL = -1
"""the mask of a block all of whose pairs may look"""


@dataclass(frozen=True)
class Lists:
    """Of each tile, the tiles that it meets. All are int32."""

    starts: Tensor
    """[tiles + 1]: the entries of tile t are starts[t] … starts[t + 1] − 1"""
    middles: Tensor
    """[tiles]: where those begin that have a mask"""
    others: Tensor
    """[n]: the tile that is met"""
    masks: Tensor
    """[n]: the mask, or `ALL`"""
    numbers: Tensor
    """[n]: the block's number, the same in both lists"""

    owners: Tensor
    """[n]: the tile whose entry it is"""

    @property
    def tiles(self) -> int:
        return len(self.middles)


@dataclass(frozen=True)
class Blocks:
    """n blocks of `height` queries by `width` keys."""

    height: int
    width: int
    by_query: Lists
    by_key: Lists
    table: Tensor
    """int8 [masks, height, width]: 1 where a query may look; at least one mask long"""

    @property
    def count(self) -> int:
        return len(self.by_query.others)


@lru_cache(maxsize=64)
def blocks_of(
    pattern: Pattern, places: range | tuple[int, ...], keys: int, height: int, width: int, device: torch.device
) -> Blocks:
    """The blocks of a pattern for queries that stand at `places`, in rising order."""
    table: dict[bytes, int] = {}
    found: list[tuple[int, int, int]] = []
    for tile, first in enumerate(range(0, len(places), height)):
        some = places[first : first + height]
        possible, certain = _columns(pattern, some, keys)
        whole = {tile for lo, hi in certain for tile in range(-(-lo // width), hi // width)}
        for other in sorted(_touched(possible, width)):
            mask = ALL if other in whole else _mask(pattern, some, other, keys, (height, width), table)
            if mask is not None:
                found.append((tile, other, mask))
    shapes = np.frombuffer(b"".join(table) or bytes(height * width), np.int8).reshape(-1, height, width)
    blocks = np.array(found, np.int32).reshape(-1, 3)
    numbers = np.arange(len(blocks), dtype=np.int32)
    return Blocks(
        height,
        width,
        _lists(blocks[:, 0], blocks[:, 1], blocks[:, 2], numbers, -(-len(places) // height), device),
        _lists(blocks[:, 1], blocks[:, 0], blocks[:, 2], numbers, -(-keys // width), device),
        torch.from_numpy(shapes.copy()).to(device),
    )


def power(number: int) -> int:
    """The next power of two, and at least what the tensor cores take: the size of a tile that holds so many."""
    return max(16, 1 << max(0, number - 1).bit_length())


def _columns(pattern: Pattern, places: Sequence[int], keys: int) -> tuple[Spans, Spans]:
    """(keys that some of the queries may look at, keys that certainly all may look at)"""
    possible: Spans = ()
    certain: Spans = ((0, keys),) if keys else ()
    for first, last in runs(places):
        possible = union(possible, pattern.spans(first, last, keys))
        certain = intersection(certain, pattern.certain(first, last, keys))
    return possible, certain


def _touched(spans: Spans, width: int) -> set[int]:
    """The tiles of keys in which the spans have a key."""
    return {tile for lo, hi in spans for tile in range(lo // width, -(-hi // width))}


def _mask(
    pattern: Pattern, places: Sequence[int], tile: int, keys: int, shape: tuple[int, int], table: dict[bytes, int]
) -> int | None:
    """The number of a block's mask in the table, where it is put if it is new; None: nobody looks there."""
    i, j = torch.tensor(places)[:, None], torch.arange(tile * shape[1], min((tile + 1) * shape[1], keys))[None, :]
    allowed = pattern.allows(i, j, keys).numpy()
    if not allowed.any():
        return None
    whole = np.zeros(shape, np.int8)
    whole[: allowed.shape[0], : allowed.shape[1]] = allowed
    if whole[: len(places)].all():
        return ALL
    return table.setdefault(whole.tobytes(), len(table))


def _lists(
    tiles: np.ndarray, others: np.ndarray, masks: np.ndarray, numbers: np.ndarray, count: int, device: torch.device
) -> Lists:
    masked = masks != ALL
    order = np.lexsort((others, masked, tiles))
    sizes, whole = np.bincount(tiles, minlength=count), np.bincount(tiles[~masked], minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)])

    def put(numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(numbers, np.int32)).to(device)

    entries = (put(column[order]) for column in (others, masks, numbers, tiles))
    return Lists(put(starts), put(starts[:-1] + whole), *entries)
