"""Lists of blocks against the pattern's own mask."""

import numpy as np
import pytest
import torch

from regard.core.kernels.gpu.blocks import ALL, BlockLists, Lists, blocks_of, pieces_of
from regard.core.pattern_text import parse

CPU = torch.device("cpu")
PATTERNS = [
    "full",
    "causal",
    "window(3)",
    "window(9, 2) | global(0, 17)",
    "strided(5)",
    "random(1, 8, 3)",
    "bigbird(4, 0, 1, 8)",
    "window(0) & causal",
]


def drawn(blocks: BlockLists, lists: Lists, queries: int, keys: int, transposed: bool) -> np.ndarray:
    """What the lists keep, pair by pair."""
    remaining = np.zeros((queries + blocks.height, keys + blocks.width), bool)
    for tile in range(lists.tiles):
        for entry in range(int(lists.starts[tile]), int(lists.starts[tile + 1])):
            mask, other = int(lists.masks[entry]), int(lists.others[entry])
            assert (mask == ALL) == (entry < int(lists.middles[tile]))
            assert int(lists.owners[entry]) == tile
            row, column = (other, tile) if transposed else (tile, other)
            at = (slice(row * blocks.height, (row + 1) * blocks.height), slice(column * blocks.width, None))
            shape = np.ones((blocks.height, blocks.width), bool)
            if mask != ALL:
                shape = (blocks.table[mask].numpy()[:, None] >> np.arange(blocks.width)) & 1 != 0
            assert not remaining[at][:, : blocks.width].any()
            remaining[at][:, : blocks.width] = shape
    return remaining[:queries, :keys]


@pytest.mark.parametrize("text", PATTERNS)
@pytest.mark.parametrize(("queries", "keys", "position"), [(40, 40, 0), (7, 33, 21), (16, 32, 3), (1, 5, 0)])
def test_both_lists_keep_what_the_pattern_allows(text: str, queries: int, keys: int, position: int) -> None:
    pattern = parse(text)
    blocks = blocks_of(pattern, range(position, position + queries), keys, 8, 16, CPU)
    mask = pattern.mask(queries, keys, position).numpy()
    np.testing.assert_array_equal(drawn(blocks, blocks.by_query, queries, keys, False), mask)
    np.testing.assert_array_equal(drawn(blocks, blocks.by_key, queries, keys, True), mask)
    by_query = sorted(zip(blocks.by_query.owners.tolist(), blocks.by_query.others.tolist(), strict=True))
    by_key = sorted(zip(blocks.by_key.others.tolist(), blocks.by_key.owners.tolist(), strict=True))
    assert by_query == by_key
    assert sorted(blocks.by_query.numbers.tolist()) == list(range(blocks.count))


def test_queries_may_be_any() -> None:
    pattern, places = parse("window(2) | global(0, 30)"), (0, 7, 8, 30, 31)
    blocks = blocks_of(pattern, places, 40, 4, 16, CPU)
    mask = pattern.mask(40, 40).numpy()[list(places)]
    np.testing.assert_array_equal(drawn(blocks, blocks.by_query, len(places), 40, False), mask)


def test_equal_masks_are_kept_once() -> None:
    blocks = blocks_of(parse("window(32)"), range(4096), 4096, 32, 64, CPU)
    assert len(blocks.table) < 12


def test_nothing_to_look_at() -> None:
    blocks = blocks_of(parse("full"), range(0), 0, 8, 16, CPU)
    assert blocks.count == 0
    assert blocks.by_query.tiles == blocks.by_key.tiles == 0


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        ("window(20)", 9),
        ("causal", 12),
        ("full", 1),
        ("window(4) | global(70)", 6),
        ("window(4) | global(96, 100, 104)", 8),
    ],
)
def test_pieces_have_few_blocks_or_one_tile(pattern: str, most: int) -> None:
    """And as many as fit; together they are all queries, in order."""
    places = range(30, 195)
    pieces = pieces_of(blocks_of(parse(pattern), places, 200, 16, 16, CPU), places, most)
    assert [place for piece in pieces for place in piece] == list(places)
    counts = [blocks_of(parse(pattern), piece, 200, 16, 16, CPU).count for piece in pieces]
    assert all(count <= most or len(piece) <= 16 for count, piece in zip(counts, pieces, strict=True))
    for piece, after, count in zip(pieces, pieces[1:], counts, strict=False):
        assert len(piece) % 16 == 0
        tile = blocks_of(parse(pattern), range(after.start, min(after.start + 16, 195)), 200, 16, 16, CPU).count
        assert count + tile > most


def test_pieces_of_nothing() -> None:
    blocks = blocks_of(parse("full"), range(3, 3), 5, 16, 16, CPU)
    assert pieces_of(blocks, range(3, 3), 4) == [range(3, 3)]
