"""A pattern as lists of blocks: what a kernel on a GPU walks along.

Queries and keys are cut into tiles; a block is a tile of queries by a tile of keys in which some pair may look. Blocks
are listed twice: tile of queries by tile of queries for the forward pass and for what flows back to queries, tile of
keys by tile of keys for what flows back to keys. In each list those come first all of whose pairs may look; of the
others each names a mask, and equal masks are kept once: a window has a few. A mask is a number of 64 bits a query, so
that a kernel reads hardly anything of it.
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
from regard.runtime.device_cache import kept

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
    """int64 [masks, height]: bit j says whether a query may look at key j of the block; at least one mask long"""

    @property
    def count(self) -> int:
        return len(self.by_query.others)


@kept(most=256)
def blocks_of(
    pattern: Pattern, places: range | tuple[int, ...], keys: int, height: int, width: int, device: torch.device
) -> Blocks:
    """The blocks of a pattern for queries that stand at `places`, in rising order; at most 64 keys wide."""
    blocks, whole = _touching(pattern, places, keys, height, width)
    masks = np.full(len(blocks), ALL, np.int32)
    bits = _bits(pattern, places, blocks[~whole], keys, height, width, device)
    shapes, named = np.unique(bits, axis=0, return_inverse=True)
    masks[~whole] = named.reshape(-1)
    everything = _everything(len(places), blocks[~whole, 0], height, width)
    masks[~whole] = np.where((bits == everything).all(1), ALL, masks[~whole])
    seen = np.ones(len(blocks), bool)
    seen[~whole] = bits.any(1)
    blocks, masks = blocks[seen], masks[seen]
    numbers = np.arange(len(blocks), dtype=np.int32)
    return Blocks(
        height,
        width,
        _lists(blocks[:, 0], blocks[:, 1], masks, numbers, -(-len(places) // height), device),
        _lists(blocks[:, 1], blocks[:, 0], masks, numbers, -(-keys // width), device),
        torch.from_numpy(shapes if len(shapes) else np.zeros((1, height), np.int64)).to(device),
    )


@lru_cache(maxsize=256)
def pieces_of(pattern: Pattern, places: range, keys: int, height: int, width: int, most: int) -> tuple[range, ...]:
    """The places of queries cut into stretches of whole tiles, each with at most `most` blocks or one tile."""
    found, first, count = [], 0, 0
    for begin in range(0, len(places), height):
        possible, _ = _columns(pattern, places[begin : begin + height], keys)
        here = len(_touched(possible, width))
        if begin > first and count + here > most:
            found.append(places[first:begin])
            first, count = begin, 0
        count += here
    return (*found, places[first:])


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


def _touching(
    pattern: Pattern, places: range | tuple[int, ...], keys: int, height: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """(int64 [n, 2]: tile of queries and tile of keys of every block where somebody might look; bool [n]: all may)"""
    found: list[tuple[int, int]] = []
    whole: list[bool] = []
    for tile, first in enumerate(range(0, len(places), height)):
        possible, certain = _columns(pattern, places[first : first + height], keys)
        sure = {other for lo, hi in certain for other in range(-(-lo // width), hi // width)}
        for other in sorted(_touched(possible, width)):
            found.append((tile, other))
            whole.append(other in sure)
    return np.array(found, np.int64).reshape(-1, 2), np.array(whole, bool)


AT_ONCE = 1024
"""masks that are asked for"""


def _bits(
    pattern: Pattern,
    places: Sequence[int],
    blocks: np.ndarray,
    keys: int,
    height: int,
    width: int,
    device: torch.device,
) -> np.ndarray:
    """int64 [n, height]: the masks of blocks [n, 2]"""
    tiles = -(-len(places) // height)
    rows = torch.full((tiles * height,), -1, device=device)
    rows[: len(places)] = torch.tensor(places, device=device)
    found = [np.zeros((0, height), np.int64)]
    for first in range(0, len(blocks), AT_ONCE):
        some = torch.from_numpy(blocks[first : first + AT_ONCE]).to(device)
        i = rows.view(tiles, height)[some[:, 0], :, None]
        j = some[:, 1, None, None] * width + torch.arange(width, device=device)
        allowed = pattern.allows(i.clamp(min=0), j.clamp(max=keys - 1), keys) & (i >= 0) & (j < keys)
        found.append((allowed.long() << torch.arange(width, device=device)).sum(-1).cpu().numpy())
    return np.concatenate(found)


def _everything(queries: int, tiles: np.ndarray, height: int, width: int) -> np.ndarray:
    """int64 [n, height]: the masks of blocks at `tiles` in which every query there is may look at every key"""
    rows = tiles[:, None] * height + np.arange(height)
    return np.where(rows < queries, np.array((1 << width) - 1, np.uint64).astype(np.int64), 0)


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
