"""A pattern as lists of blocks, over which GPU kernels loop.

Queries and keys are divided into tiles; a block is a tile of queries by a tile of keys in which some pair is allowed.
Blocks are listed twice: by tile of queries, for the forward pass and the gradient of the queries, and by tile of keys,
for the gradient of the keys. In each list the blocks without a mask, in which all pairs are allowed, come first; each
of the others refers to a mask. Equal masks are stored once: a window has a few. A mask has 64 bits for each query, so
that a kernel reads very little for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.core.patterns import Pattern
from regard.core.spans import Spans, intersection, runs, union

HEIGHT, WIDTH = 64, 64  # queries and keys of a block
ALL = -1  # the mask number of a block in which all pairs are allowed


@dataclass(frozen=True)
class Lists:
    """For each tile, the tiles with which it forms blocks. All tensors are int32."""

    starts: Tensor  # [tiles + 1]: the entries of tile t are starts[t] … starts[t + 1] − 1
    middles: Tensor  # [tiles]: where the entries with a mask begin
    others: Tensor  # [n]: the other tile of the block
    masks: Tensor  # [n]: the number of the mask, or `ALL`
    numbers: Tensor  # [n]: the block's number, the same in both lists
    owners: Tensor  # [n]: the tile in whose list the entry is

    @property
    def tiles(self) -> int:
        return len(self.middles)


@dataclass(frozen=True)
class BlockLists:
    """n blocks of `height` queries by `width` keys."""

    height: int
    width: int
    by_query: Lists
    by_key: Lists
    table: Tensor
    """int64 [masks, height]: bit j says whether a query may attend to key j of the block; has at least one mask"""
    counts: tuple[int, ...]
    """the number of blocks of each tile of queries, on the host"""

    @property
    def count(self) -> int:
        return len(self.by_query.others)


def blocks_of(
    pattern: Pattern, places: range | tuple[int, ...], keys: int, height: int, width: int, device: torch.device
) -> BlockLists:
    """Return the blocks of a pattern for queries at the positions `places`, ascending; `width` is at most 64."""
    blocks, whole = _candidate_blocks(pattern, places, keys, height, width)
    masks = np.full(len(blocks), ALL, np.int32)
    bits = _bit_masks(pattern, places, blocks[~whole], keys, height, width, device)
    distinct, inverse = np.unique(bits, axis=0, return_inverse=True)
    masks[~whole] = inverse.reshape(-1)
    rows = blocks[~whole, :1] * height + np.arange(height)
    # the masks of blocks in which every existing query sees every key
    full = np.where(rows < len(places), np.array((1 << width) - 1, np.uint64).astype(np.int64), 0)
    masks[~whole] = np.where((bits == full).all(1), ALL, masks[~whole])
    nonempty = np.ones(len(blocks), bool)
    nonempty[~whole] = bits.any(1)
    blocks, masks = blocks[nonempty], masks[nonempty]
    numbers = np.arange(len(blocks), dtype=np.int32)
    by_query = _lists(blocks[:, 0], blocks[:, 1], masks, numbers, -(-len(places) // height), device)
    by_key = _lists(blocks[:, 1], blocks[:, 0], masks, numbers, -(-keys // width), device)
    table = torch.from_numpy(distinct if len(distinct) else np.zeros((1, height), np.int64)).to(device)
    counts = np.bincount(blocks[:, 0], minlength=by_query.tiles)
    return BlockLists(height, width, by_query, by_key, table, tuple(counts.tolist()))


def group_blocks(
    pattern: Pattern, queries: int, keys: int, position: int, height: int, width: int, device: torch.device
) -> list[tuple[tuple[int, ...] | None, BlockLists]]:
    """Return (None, blocks) of all queries with the pattern's light part, then (positions, blocks) of the heavy
    queries, if there are any, with all that they see."""
    heavy = tuple(row for row in pattern.heavy_rows if position <= row < position + queries)
    light = pattern.light if heavy else pattern
    all_queries = blocks_of(light, range(position, position + queries), keys, height, width, device)
    if not heavy:
        return [(None, all_queries)]
    return [(None, all_queries), (heavy, blocks_of(pattern, heavy, keys, height, width, device))]


def pieces_of(blocks: BlockLists, places: range, max_blocks: int) -> list[range]:
    """Split the positions of queries into pieces of whole tiles, each with at most `max_blocks` blocks or one tile."""
    pieces, first, count = [], 0, 0
    for begin, tile_blocks in zip(range(0, len(places), blocks.height), blocks.counts, strict=True):
        if begin > first and count + tile_blocks > max_blocks:
            pieces.append(places[first:begin])
            first, count = begin, 0
        count += tile_blocks
    return [*pieces, places[first:]]


def next_power_of_two(number: int) -> int:
    """Return the size of a tile for so many elements: the next power of two, and at least 16, for tensor cores."""
    return max(16, 1 << max(0, number - 1).bit_length())


def _key_spans(pattern: Pattern, places: Sequence[int], keys: int) -> tuple[Spans, Spans]:
    """Return (the keys that some queries may attend to, the keys that certainly all may attend to)."""
    possible: Spans = ()
    certain: Spans = ((0, keys),) if keys else ()
    for first, last in runs(places):
        possible = union(possible, pattern.spans(first, last, keys))
        certain = intersection(certain, pattern.certain(first, last, keys))
    return possible, certain


def _key_tiles(spans: Spans, width: int) -> set[int]:
    """Return the tiles of keys that the spans touch."""
    return {tile for lo, hi in spans for tile in range(lo // width, -(-hi // width))}


def _candidate_blocks(
    pattern: Pattern, places: range | tuple[int, ...], keys: int, height: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return every block in which a pair might be allowed, int64 [n, 2]: tile of queries and tile of keys; and whether
    all its pairs certainly are, bool [n]."""
    blocks: list[tuple[int, int]] = []
    whole: list[bool] = []
    for tile, first in enumerate(range(0, len(places), height)):
        possible, certain = _key_spans(pattern, places[first : first + height], keys)
        certain_tiles = {other for lo, hi in certain for other in range(-(-lo // width), hi // width)}
        for other in sorted(_key_tiles(possible, width)):
            blocks.append((tile, other))
            whole.append(other in certain_tiles)
    return np.array(blocks, np.int64).reshape(-1, 2), np.array(whole, bool)


BLOCKS_AT_ONCE = 1024  # blocks whose masks are computed in one call


def _bit_masks(
    pattern: Pattern, places: Sequence[int], blocks: np.ndarray, keys: int, height: int, width: int,
    device: torch.device,
) -> np.ndarray:  # fmt: skip
    """Return the masks of blocks [n, 2], int64 [n, height]."""
    tiles = -(-len(places) // height)
    rows = torch.full((tiles * height,), -1, device=device)
    rows[: len(places)] = torch.tensor(places, device=device)
    masks = [np.zeros((0, height), np.int64)]
    for first in range(0, len(blocks), BLOCKS_AT_ONCE):
        batch = torch.from_numpy(blocks[first : first + BLOCKS_AT_ONCE]).to(device)
        i = rows.view(tiles, height)[batch[:, 0], :, None]
        j = batch[:, 1, None, None] * width + torch.arange(width, device=device)
        allowed = pattern.allows(i.clamp(min=0), j.clamp(max=keys - 1), keys) & (i >= 0) & (j < keys)
        masks.append((allowed.long() << torch.arange(width, device=device)).sum(-1).cpu().numpy())
    return np.concatenate(masks)


def _lists(
    tiles: np.ndarray, others: np.ndarray, masks: np.ndarray, numbers: np.ndarray, count: int, device: torch.device
) -> Lists:
    masked = masks != ALL
    order = np.lexsort((others, masked, tiles))
    sizes, whole = np.bincount(tiles, minlength=count), np.bincount(tiles[~masked], minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)])

    def to_device(numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(numbers, np.int32)).to(device)

    entries = (to_device(column[order]) for column in (others, masks, numbers, tiles))
    return Lists(to_device(starts), to_device(starts[:-1] + whole), *entries)
