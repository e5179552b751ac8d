"""Patterns of global positions and of blocks, and two published combinations: Longformer and BigBird."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import cast

import torch
from torch import Tensor

from regard.core import spans as runs
from regard.core.checks import broadcast, shape, whole_number
from regard.core.patterns import Full, Pattern, Window
from regard.core.spans import Spans
from regard.core.strided_patterns import Strided
from regard.runtime import noise
from regard.runtime.caches import cached
from regard.runtime.device_cache import device_cache

_BLOCKS_PER_DRAW = 1024  # query blocks whose random key blocks are drawn at once


@dataclass(frozen=True, repr=False)
class Global(Pattern):
    """i or j is one of the positions: these attend to all, and all to them. Positions beyond the end are ignored."""

    positions: tuple[int, ...]
    position_runs: Spans = field(compare=False)

    def __init__(self, positions: Iterable[int] | int) -> None:
        if not isinstance(positions, (int, Iterable)):
            raise ValueError(f"Global: positions: expected whole numbers ≥ 0, got {positions!r}")
        given = [positions] if isinstance(positions, int) else list(positions)
        checked = {whole_number("Global", "positions", p) for p in given}
        object.__setattr__(self, "positions", tuple(sorted(checked)))
        object.__setattr__(self, "position_runs", runs.runs(checked))

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        chosen = torch.tensor(self.positions, dtype=i.dtype, device=i.device)
        return torch.isin(i, chosen) | torch.isin(j, chosen)

    def spans(self, first: int, last: int, size: int) -> Spans:
        return super().spans(first, last, size) if self._between(first, last) else self.light.spans(first, last, size)

    def certain(self, first: int, last: int, size: int) -> Spans:
        if self._between(first, last) == last - first:
            return super().spans(first, last, size)
        return self.light.spans(first, last, size)

    def _between(self, first: int, last: int) -> int:
        """Return how many of the positions lie in first … last − 1."""
        return bisect_left(self.positions, last) - bisect_left(self.positions, first)

    @property
    def heavy_rows(self) -> tuple[int, ...]:
        return self.positions

    @property
    def light(self) -> Pattern:
        return _SeenByAll(self.positions, self.position_runs)

    def __str__(self) -> str:
        return f"global({', '.join(f'{lo}' if hi == lo + 1 else f'{lo}:{hi}' for lo, hi in self.position_runs)})"


@dataclass(frozen=True, repr=False)
class _SeenByAll(Pattern):
    """j is one of the positions: the part of `Global` that applies to all other queries."""

    positions: tuple[int, ...]
    position_runs: Spans = field(compare=False)

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        seen = torch.isin(j, torch.tensor(self.positions, dtype=j.dtype, device=j.device))
        return seen & Full().allows(i, j, size)

    def spans(self, first: int, last: int, size: int) -> Spans:
        return runs.clip(self.position_runs, size)

    certain = spans


@dataclass(frozen=True, repr=False)
class Blocks(Pattern):
    """Block-sparse attention: block r of queries may attend to the blocks of keys in `table[r]`.

    `table` is a bool tensor [query blocks, key blocks], or for each query block the numbers of its key blocks. Queries
    beyond the table attend to nothing.
    """

    table: tuple[tuple[int, ...], ...]
    block: int

    def __init__(self, table: Tensor | Sequence[Iterable[int]], block: int) -> None:
        object.__setattr__(self, "table", _rows_of(table))
        object.__setattr__(self, "block", whole_number("Blocks", "block", block, minimum=1))

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        table = _dense_table(self.table, i.device)
        rows, columns = table.shape
        return table[(i // self.block).clamp(max=rows - 1), (j // self.block).clamp(max=columns - 1)]

    def spans(self, first: int, last: int, size: int) -> Spans:
        return runs.clip(runs.union(*self._rows(first, last)), size)

    def certain(self, first: int, last: int, size: int) -> Spans:
        return reduce(runs.intersection, self._rows(first, last), ((0, size),))

    def _rows(self, first: int, last: int) -> Iterator[Spans]:
        """Yield the keys of each block of queries that begins before `last` and ends after `first`."""
        for number in range(first // self.block, (last - 1) // self.block + 1):
            row = self.table[number] if number < len(self.table) else ()
            yield runs.union((c * self.block, (c + 1) * self.block) for c in row)

    def __str__(self) -> str:
        return f"blocks([{', '.join(str(list(row)) for row in self.table)}], {self.block})"


@dataclass(frozen=True, repr=False)
class RandomBlocks(Pattern):
    """j's block is one of `count` distinct ones drawn by a counter-based hash of (seed, i // block).

    The blocks are drawn from those of `size` keys, so the draw depends on how many keys there are.
    """

    count: int
    block: int
    seed: int = 0

    def __post_init__(self) -> None:
        for name, minimum in (("count", 0), ("block", 1), ("seed", 0)):
            whole_number("RandomBlocks", name, getattr(self, name), minimum)

    def drawn(self, rows: Tensor, size: int) -> Tensor:
        """Return the key blocks of each query block in `rows`: [*rows.shape, count], distinct, −1 for none.

        Floyd's sampling without replacement: for t = n − count … n − 1 draw r from 0 … t; take r, or t if r is taken.
        """
        blocks = -(-size // self.block)
        count = min(self.count, blocks)
        chosen = torch.full((*rows.shape, count), -1, dtype=torch.int64, device=rows.device)
        for slot, t in enumerate(range(blocks - count, blocks)):
            candidate = noise.bits(self.seed, rows, torch.tensor(slot, device=rows.device)).long() % (t + 1)
            taken = (chosen == candidate[..., None]).any(-1)
            chosen[..., slot] = torch.where(taken, t, candidate)
        return chosen

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return _contains(self.drawn(i // self.block, size), j // self.block)

    def spans(self, first: int, last: int, size: int) -> Spans:
        return self._table(first, last, size).spans(0, last - first // self.block * self.block, size)

    def certain(self, first: int, last: int, size: int) -> Spans:
        start = first // self.block * self.block
        return self._table(first, last, size).certain(first - start, last - start, size)

    def _table(self, first: int, last: int, size: int) -> Blocks:
        """Return the draws for queries first … last − 1 as a table whose row 0 is the block of `first`."""
        numbers = range(first // self.block, (last - 1) // self.block + 1)
        return Blocks([_draws(self, size, n // _BLOCKS_PER_DRAW)[n % _BLOCKS_PER_DRAW] for n in numbers], self.block)

    def __str__(self) -> str:
        return f"random({self.count}, {self.block}, {self.seed})"


def longformer(window: int, globals: Iterable[int] = (), stride: int | None = None) -> Pattern:
    """Return Longformer's pattern (Beltagy et al. 2020): a window of total width `window`, global positions, stride."""
    pattern: Pattern = Window.from_longformer(window)
    global_positions = Global(globals)
    if global_positions.positions:
        pattern = pattern | global_positions
    return pattern if stride is None else pattern | Strided(stride)


def bigbird(window: int, globals: Iterable[int], random: int, block: int, seed: int = 0) -> Pattern:
    """Return BigBird's pattern (Zaheer et al. 2020): window, global positions, and `random` key blocks per query block.

    `window` is the total width in positions. The paper's window of w blocks is w·block positions at block granularity.
    """
    random_blocks = RandomBlocks(random, block, seed)
    pattern = longformer(window, globals)
    return pattern | random_blocks if random else pattern


@cached(maxsize=64, reason="each tile asks for a few draws; drawn one by one they would cost more than the attention")
def _draws(pattern: RandomBlocks, size: int, chunk: int) -> list[list[int]]:
    """Return the draws of one chunk of query blocks."""
    rows = torch.arange(chunk * _BLOCKS_PER_DRAW, (chunk + 1) * _BLOCKS_PER_DRAW, device="cpu")
    return cast(list[list[int]], pattern.drawn(rows, size).tolist())


def _rows_of(table: Tensor | Sequence[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    """Return the sorted key blocks of each query block, whichever form the table has."""
    if hasattr(table, "dtype"):
        table = torch.as_tensor(table)
        if table.dtype is not torch.bool or table.dim() != 2:
            got = f"{table.dtype} {shape(table)}"
            raise ValueError(f"Blocks: table: expected bool [query blocks, key blocks], got {got}")
        return tuple(tuple(row.nonzero()[:, 0].tolist()) for row in table)
    if not isinstance(table, Sequence) or not all(isinstance(row, Iterable) for row in table):
        raise ValueError(f"Blocks: table: expected a list of key blocks for each query block, got {table!r}")
    return tuple(tuple(sorted({whole_number("Blocks", "table", c, -1) for c in row} - {-1})) for row in table)


@device_cache(maxsize=32, reason="each tile is compared with it, and copying it to a GPU makes Python wait")
def _dense_table(table: tuple[tuple[int, ...], ...], device: torch.device) -> Tensor:
    """Return the table as bool [rows + 1, columns + 1]; the last row and column are False, for blocks beyond it."""
    columns = max([row[-1] + 1 for row in table if row] + [0])
    dense = [[column in row for column in range(columns + 1)] for row in (*map(frozenset, table), frozenset())]
    return torch.tensor(dense, dtype=torch.bool, device=device)


def _contains(chosen: Tensor, column: Tensor) -> Tensor:
    """Return where the column is one of the chosen [..., count]; slot by slot, to avoid a tensor [..., T, S, count]."""
    shape = broadcast(chosen.shape[:-1], column.shape)
    contained = torch.zeros(shape, dtype=torch.bool, device=column.device)
    for slot in range(chosen.shape[-1]):
        contained |= chosen[..., slot] == column
    return contained
