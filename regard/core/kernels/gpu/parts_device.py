"""Parts of tiles that were cut into several jobs (jobs.py), put together on the device.

A program takes ROWS states of one tile of one row of the batch, and reads PIECES of its parts at a time. Of tiles that
were cut, number n is `tiles[n]`, and its parts are `firsts[n]` … `lasts[n]` − 1.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.gpu.dot_device import _put

LENGTHS = ["count", "length"]
"""what changes from call to call: kernels are compiled once for all of them"""


@triton.jit
def _tile(tiles, firsts, lasts, ROWS: tl.constexpr, SIZE: tl.constexpr):
    """(row of the batch, places inside the tile, places of these states, first part, behind the last)"""
    number, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    inside = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    places = tl.load(tiles + number) * SIZE + inside
    return row, inside, places, tl.load(firsts + number), tl.load(lasts + number)


@triton.jit
def _pieces(parts, found, last, inside, width, SIZE: tl.constexpr, FEATURES: tl.constexpr):
    """[PIECES, ROWS, FEATURES] of parts [parts, SIZE, width], 0 beyond"""
    d = tl.arange(0, FEATURES)
    at = (found[:, None].to(tl.int64) * SIZE + inside[None, :])[:, :, None] * width + d[None, None, :]
    return tl.load(parts + at, (found < last)[:, None, None] & (d < width)[None, None, :], 0.0)


@triton.jit(do_not_specialize=LENGTHS)
def add(
    parts, result, tiles, firsts, lasts, count, length, width,
    SIZE: tl.constexpr, ROWS: tl.constexpr, PIECES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """float32 [G, parts, SIZE, D], summed up into [G, N, D]"""
    row, inside, places, first, last = _tile(tiles, firsts, lasts, ROWS, SIZE)
    parts += row * count * SIZE * width
    total = tl.zeros((ROWS, FEATURES), tl.float32)
    for begin in range(first, last, PIECES):
        total += tl.sum(_pieces(parts, begin + tl.arange(0, PIECES), last, inside, width, SIZE, FEATURES), 0)
    _put(result + row * length * width, total, places, length, width, FEATURES)


@triton.jit(do_not_specialize=LENGTHS)
def mix(
    parts, sums, context, lse, tiles, firsts, lasts, count, length, width,
    SIZE: tl.constexpr, ROWS: tl.constexpr, PIECES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Softmaxes over some of the keys, float32 [G, parts, SIZE, F] and their log-sum-exp [G, parts, SIZE] in units of
    log 2, as those over all of them: context [G, T, F] and lse [G, T]"""
    row, inside, places, first, last = _tile(tiles, firsts, lasts, ROWS, SIZE)
    parts += row * count * SIZE * width
    sums += row * count * SIZE
    highest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    mixed = tl.zeros((ROWS, FEATURES), tl.float32)
    for begin in range(first, last, PIECES):
        found = begin + tl.arange(0, PIECES)
        some = tl.load(sums + found[:, None] * SIZE + inside[None, :], (found < last)[:, None], -float("inf"))
        higher = tl.maximum(highest, tl.max(some, 0))
        finite = tl.where(higher == -float("inf"), 0.0, higher)
        shares, fade = tl.exp2(some - finite[None, :]), tl.exp2(highest - finite)
        total = total * fade + tl.sum(shares, 0)
        pieces = _pieces(parts, found, last, inside, width, SIZE, FEATURES)
        mixed = mixed * fade[:, None] + tl.sum(shares[:, :, None] * pieces, 0)
        highest = higher
    empty = total == 0
    mixed = mixed / tl.where(empty, 1.0, total)[:, None]
    _put(context + row * length * width, mixed, places, length, width, FEATURES)
    sums_of_all = tl.where(empty, -float("inf"), highest + tl.log2(tl.where(empty, 1.0, total)))
    tl.store(lse + row * length + places, sums_of_all, places < length)


@triton.jit(do_not_specialize=LENGTHS)
def choose(
    part_best, part_chosen, best, chosen, tiles, firsts, lasts, count, length,
    SIZE: tl.constexpr, ROWS: tl.constexpr, PIECES: tl.constexpr,
):  # fmt: skip
    """Of the keys that parts chose, int32 [G, parts, SIZE], −1 where there is none, that of the highest energy, of
    equal ones the first: [G, T], with its energy."""
    row, inside, places, first, last = _tile(tiles, firsts, lasts, ROWS, SIZE)
    part_best += row * count * SIZE
    part_chosen += row * count * SIZE
    highest = tl.full((ROWS,), -float("inf"), tl.float32)
    where = tl.full((ROWS,), -1, tl.int32)
    for begin in range(first, last, PIECES):
        found = begin + tl.arange(0, PIECES)
        at, there = found[:, None] * SIZE + inside[None, :], (found < last)[:, None]
        some = tl.load(part_best + at, there, -float("inf"))
        keys = tl.load(part_chosen + at, there, -1)
        higher = tl.max(some, 0)
        key = tl.min(tl.where((some == higher[None, :]) & (keys >= 0), keys, 2147483647), 0)
        better = (key < 2147483647) & ((where < 0) | (higher > highest) | ((higher == highest) & (key < where)))
        highest, where = tl.where(better, higher, highest), tl.where(better, key, where)
    tl.store(best + row * length + places, highest, places < length)
    tl.store(chosen + row * length + places, where, places < length)
