"""Merging the parts of tiles that were split into several jobs (jobs.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from regard.core.kernels.gpu.blocks import next_power_of_two
from regard.core.kernels.gpu.dot_device import _store_rows
from regard.core.kernels.gpu.launch import launch

STATES_PER_PROGRAM = 4  # few, because few tiles are split
PARTS_AT_ONCE = 16  # parts that a program reads at a time


@dataclass(frozen=True)
class SplitTiles:
    """n split tiles of `size` states. All tensors are int32 [n]."""

    size: int
    tiles: Tensor
    firsts: Tensor  # the first part of each tile
    lasts: Tensor  # the end of its parts (exclusive)

    def add(self, parts: Tensor, result: Tensor) -> None:
        """Sum the parts [G, parts, size, D] into the result [G, N, D]."""
        self._launch(_add, parts, result, FEATURES=next_power_of_two(result.shape[-1]))

    def mix(self, parts: Tensor, lses: Tensor, context: Tensor, lse: Tensor) -> None:
        """Merge softmaxes over some keys each, [G, parts, size, F] and [G, parts, size], into [G, T, F] and [G, T]."""
        self._launch(_mix, parts, context, lses, lse, FEATURES=next_power_of_two(context.shape[-1]))

    def choose(self, part_best: Tensor, part_chosen: Tensor, best: Tensor, chosen: Tensor) -> None:
        """Write the best of the parts' choices, [G, parts, size], into [G, T]."""
        self._launch(_choose, part_best, best, part_chosen, chosen)

    def _launch(self, kernel: Any, parts: Tensor, result: Tensor, *others: Tensor, **options: int) -> None:
        launch(
            kernel, (len(self.tiles), len(result), self.size // STATES_PER_PROGRAM), parts, result, *others,
            self.tiles, self.firsts, self.lasts, parts.shape[1], *result.shape[1:],
            SIZE=self.size, BLOCK_ROWS=STATES_PER_PROGRAM, PIECES=PARTS_AT_ONCE, **options,
        )  # fmt: skip


# A program takes BLOCK_ROWS states of one tile of one row of the batch, and reads PIECES of its parts at a time. Split
# tile number n is `tiles[n]`, and its parts are `firsts[n]` … `lasts[n]` − 1.

LENGTHS = ["count", "length"]  # arguments that change from call to call: kernels are compiled once for all their values


@triton.jit
def _tile(tiles, firsts, lasts, BLOCK_ROWS: tl.constexpr, SIZE: tl.constexpr):
    """Return (row of the batch, indices inside the tile, indices of the states, first part, end of the parts)."""
    number, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    inside = tl.program_id(2) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    indices = tl.load(tiles + number) * SIZE + inside
    return row, inside, indices, tl.load(firsts + number), tl.load(lasts + number)


@triton.jit
def _load_parts(parts, numbers, last, inside, width, SIZE: tl.constexpr, FEATURES: tl.constexpr):
    """Load [PIECES, BLOCK_ROWS, FEATURES] of parts [parts, SIZE, width], 0 out of bounds."""
    d = tl.arange(0, FEATURES)
    offsets = (numbers[:, None].to(tl.int64) * SIZE + inside[None, :])[:, :, None] * width + d[None, None, :]
    return tl.load(parts + offsets, (numbers < last)[:, None, None] & (d < width)[None, None, :], 0.0)


@triton.jit(do_not_specialize=LENGTHS)
def _add(
    parts, result, tiles, firsts, lasts, count, length, width,
    SIZE: tl.constexpr, BLOCK_ROWS: tl.constexpr, PIECES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Sum parts, float32 [G, parts, SIZE, D], into [G, N, D]."""
    row, inside, indices, first, last = _tile(tiles, firsts, lasts, BLOCK_ROWS, SIZE)
    parts += row * count * SIZE * width
    total = tl.zeros((BLOCK_ROWS, FEATURES), tl.float32)
    for begin in range(first, last, PIECES):
        total += tl.sum(_load_parts(parts, begin + tl.arange(0, PIECES), last, inside, width, SIZE, FEATURES), 0)
    _store_rows(result + row * length * width, total, indices, length, width, FEATURES)


@triton.jit(do_not_specialize=LENGTHS)
def _mix(
    parts, context, part_lse, lse, tiles, firsts, lasts, count, length, width,
    SIZE: tl.constexpr, BLOCK_ROWS: tl.constexpr, PIECES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Merge softmaxes over some of the keys, float32 [G, parts, SIZE, F] and their log-sum-exp [G, parts, SIZE] in
    units of log 2, into that over all keys: context [G, T, F] and lse [G, T]."""
    row, inside, indices, first, last = _tile(tiles, firsts, lasts, BLOCK_ROWS, SIZE)
    parts += row * count * SIZE * width
    part_lse += row * count * SIZE
    highest = tl.full((BLOCK_ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_ROWS,), tl.float32)
    merged = tl.zeros((BLOCK_ROWS, FEATURES), tl.float32)
    for begin in range(first, last, PIECES):
        numbers = begin + tl.arange(0, PIECES)
        lses = tl.load(part_lse + numbers[:, None] * SIZE + inside[None, :], (numbers < last)[:, None], -float("inf"))
        higher = tl.maximum(highest, tl.max(lses, 0))
        finite = tl.where(higher == -float("inf"), 0.0, higher)
        weights, rescale = tl.exp2(lses - finite[None, :]), tl.exp2(highest - finite)
        total = total * rescale + tl.sum(weights, 0)
        contexts = _load_parts(parts, numbers, last, inside, width, SIZE, FEATURES)
        merged = merged * rescale[:, None] + tl.sum(weights[:, :, None] * contexts, 0)
        highest = higher
    empty = total == 0
    merged = merged / tl.where(empty, 1.0, total)[:, None]
    _store_rows(context + row * length * width, merged, indices, length, width, FEATURES)
    total_lse = tl.where(empty, -float("inf"), highest + tl.log2(tl.where(empty, 1.0, total)))
    tl.store(lse + row * length + indices, total_lse, indices < length)


@triton.jit(do_not_specialize=LENGTHS)
def _choose(
    part_best, best, part_chosen, chosen, tiles, firsts, lasts, count, length,
    SIZE: tl.constexpr, BLOCK_ROWS: tl.constexpr, PIECES: tl.constexpr,
):  # fmt: skip
    """Select, of the keys that parts chose, int32 [G, parts, SIZE], −1 where there is none, the one with the highest
    energy, ties to the first: [G, T], with its energy."""
    row, inside, indices, first, last = _tile(tiles, firsts, lasts, BLOCK_ROWS, SIZE)
    part_best += row * count * SIZE
    part_chosen += row * count * SIZE
    highest = tl.full((BLOCK_ROWS,), -float("inf"), tl.float32)
    position = tl.full((BLOCK_ROWS,), -1, tl.int32)
    for begin in range(first, last, PIECES):
        numbers = begin + tl.arange(0, PIECES)
        offsets, in_bounds = numbers[:, None] * SIZE + inside[None, :], (numbers < last)[:, None]
        energies = tl.load(part_best + offsets, in_bounds, -float("inf"))
        keys = tl.load(part_chosen + offsets, in_bounds, -1)
        higher = tl.max(energies, 0)
        key = tl.min(tl.where((energies == higher[None, :]) & (keys >= 0), keys, 2147483647), 0)
        better = (key < 2147483647) & ((position < 0) | (higher > highest) | ((higher == highest) & (key < position)))
        highest, position = tl.where(better, higher, highest), tl.where(better, key, position)
    tl.store(best + row * length + indices, highest, indices < length)
    tl.store(chosen + row * length + indices, position, indices < length)
