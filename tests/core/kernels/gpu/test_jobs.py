"""Lists of blocks as jobs: nothing is lost, and only what is far longer than the rest is cut."""

from itertools import pairwise

import pytest
import torch

pytest.importorskip("triton", minversion="3.4")  # older interpreters do not know the numpy of today
from regard.core.kernels.gpu.blocks import ALL, blocks_of
from regard.core.kernels.gpu.jobs import jobs_of
from regard.core.pattern_text import parse

CPU = torch.device("cpu")


def test_nothing_to_do() -> None:
    assert jobs_of(blocks_of(parse("full"), range(0), 0, 8, 16, CPU).by_query, 8, CPU).count == 0


def test_long_lists_are_cut_and_nothing_is_lost() -> None:
    blocks = blocks_of(parse("window(4) | global(0)"), range(4000), 4000, 8, 8, CPU)
    jobs = jobs_of(blocks.by_query, 8, CPU)
    assert jobs.split is not None and jobs.split.tiles.tolist() == [0]
    done = [[] for _ in range(blocks.by_query.tiles)]  # type: list[list[int]]
    for tile, begin, middle, end, slot in zip(
        *(x.tolist() for x in (jobs.tiles, jobs.begins, jobs.middles, jobs.ends, jobs.slots)), strict=True
    ):
        done[tile] += range(begin, end)
        assert begin <= middle <= end
        assert all((int(blocks.by_query.masks[entry]) == ALL) == (entry < middle) for entry in range(begin, end))
        assert (slot < 0) == (tile != 0)
    starts = blocks.by_query.starts.tolist()
    assert [sorted(some) for some in done] == [list(range(a, b)) for a, b in pairwise(starts)]
    assert [jobs.parts] == jobs.split.lasts.tolist() and jobs.parts > 1


@pytest.mark.parametrize("pattern", ["full", "causal", "window(600)"])
def test_lists_of_like_length_are_not_cut(pattern: str) -> None:
    blocks = blocks_of(parse(pattern), range(1024), 1024, 8, 8, CPU)
    assert jobs_of(blocks.by_query, 8, CPU).split is None
