"""The queries of each term of a pattern in groups, each with its blocks, masks and jobs.

Queries that see far more keys than their neighbours (global positions) form a group of their own, as on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.kernels.gpu import blocks as lists
from regard.core.kernels.gpu.arrangement import Arrangement, arrangements_of
from regard.core.kernels.gpu.blocks import BlockLists, group_blocks
from regard.core.kernels.gpu.jobs import Jobs, jobs_of
from regard.core.patterns import Pattern
from regard.runtime.device_cache import device_cache


@dataclass(frozen=True)
class QueryGroup:
    """Queries that are computed together, and the blocks of keys that they see."""

    rows: Tensor | None
    """int64: the indices of the queries; None: all queries"""
    blocks: BlockLists
    masks: Tensor
    """with `intervals`, the first and the end of the keys that each query sees, int32 [masks, 2, HEIGHT]; otherwise the
    bit masks of `BlockLists.table`"""
    intervals: bool
    by_query: Jobs
    by_key: Jobs


@dataclass(frozen=True)
class GroupedTerm:
    """A term of a pattern: its order of positions, and its groups of queries in that order."""

    arrangement: Arrangement
    light: QueryGroup
    heavy: QueryGroup | None


@device_cache(maxsize=256, reason="listing the blocks of a long text takes milliseconds")
def grouped_terms_of(
    pattern: Pattern, queries: int, keys: int, position: int, device: torch.device
) -> tuple[GroupedTerm, ...]:
    """Return the terms of a pattern."""
    terms = arrangements_of(pattern, queries, keys, position)
    return tuple(
        GroupedTerm(each, *query_groups_of(each.pattern, *each.sizes, each.position, device)) for each in terms
    )


def query_groups_of(
    pattern: Pattern, queries: int, keys: int, position: int, device: torch.device
) -> tuple[QueryGroup, QueryGroup | None]:
    """Return (light, heavy): all queries with the pattern's light part, and the heavy queries with all that they see.
    `heavy` is None if there are no heavy queries. Its results replace those of the same queries in `light`."""
    groups = group_blocks(pattern, queries, keys, position, lists.HEIGHT, lists.WIDTH, device)
    # Both groups have masks of the same form, so that one compiled kernel serves both.
    tables = [_intervals(blocks.table) for _, blocks in groups]
    as_intervals = all(table is not None for table in tables)
    result = []
    for (positions, blocks), table in zip(groups, tables, strict=True):
        rows = None if positions is None else torch.tensor([at - position for at in positions], device=device)
        jobs = jobs_of(blocks.by_query, lists.HEIGHT, device), jobs_of(blocks.by_key, lists.WIDTH, device)
        masks = table if table is not None and as_intervals else blocks.table
        result.append(QueryGroup(rows, blocks, masks, as_intervals, *jobs))
    return result[0], result[1] if len(result) > 1 else None


def _intervals(table: Tensor) -> Tensor | None:
    """Return bit masks int64 [n, HEIGHT] as intervals of keys, int32 [n, 2, HEIGHT], if each mask is one interval.
    Comparing with the bounds of an interval is cheaper on the device than extracting bits."""
    j = torch.arange(lists.WIDTH, device=table.device)
    visible = (table[..., None] >> j) & 1 != 0  # [n, HEIGHT, WIDTH]
    low = torch.where(visible, j, lists.WIDTH).amin(-1)
    high = torch.where(visible, j + 1, 0).amax(-1)
    if not bool((visible == (j >= low[..., None]) & (j < high[..., None])).all()):
        return None
    return torch.stack([low, high], 1).to(torch.int32)
