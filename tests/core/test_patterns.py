"""Patterns against their definitions, written out pair by pair in plain Python."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import (
    Blocks,
    Causal,
    Dilated,
    Full,
    Global,
    LocalMonotonic,
    Pattern,
    RandomBlocks,
    Strided,
    Window,
    bigbird,
    longformer,
    per_head,
)

small = st.integers(0, 9)
atoms = st.one_of(
    st.just(Full()),
    st.just(Causal()),
    st.builds(Window, small),
    st.builds(Window, st.none() | small, st.none() | small),
    st.builds(Strided, st.integers(1, 7)),
    st.builds(Dilated, st.integers(0, 4), st.integers(1, 5)),
    st.builds(Global, st.lists(st.integers(0, 25), max_size=4)),
    st.builds(RandomBlocks, st.integers(0, 3), st.integers(1, 5), st.integers(0, 3)),
    st.builds(Blocks, st.lists(st.lists(st.integers(0, 6), max_size=4), max_size=6), st.integers(1, 5)),
)
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(st.builds(Pattern.__and__, inner, inner), st.builds(Pattern.__or__, inner, inner)),
    max_leaves=4,
)


def written_out(allowed, queries: int, keys: int, position: int = 0) -> list[list[bool]]:
    return [[bool(allowed(position + t, j)) for j in range(keys)] for t in range(queries)]


@pytest.mark.parametrize("position", [0, 5])
@pytest.mark.parametrize(
    ("pattern", "definition"),
    [
        (Full(), lambda i, j: True),
        (Causal(), lambda i, j: j <= i),
        (Window(3), lambda i, j: abs(i - j) <= 3),
        (Window(4, 1), lambda i, j: i - 4 <= j <= i + 1),
        (Window(None, 2), lambda i, j: j <= i + 2),
        (Strided(3), lambda i, j: (i - j) % 3 == 0),
        (Dilated(2, 3), lambda i, j: abs(i - j) <= 6 and (i - j) % 3 == 0),
        (Global([0, 7, 99]), lambda i, j: i in (0, 7, 99) or j in (0, 7, 99)),
        (Blocks([[0], [0, 2], []], 4), lambda i, j: i // 4 < 3 and j // 4 in ([0], [0, 2], [])[i // 4]),
        (longformer(4, [1], stride=5), lambda i, j: abs(i - j) <= 2 or 1 in (i, j) or (i - j) % 5 == 0),
        (Window(2) | Global([0]) & Causal(), lambda i, j: abs(i - j) <= 2 or (0 in (i, j) and j <= i)),
    ],
)
def test_definitions(pattern: Pattern, definition, position: int) -> None:
    assert pattern.mask(14, 17, position).tolist() == written_out(definition, 14, 17, position)


def check_spans(pattern: Pattern, first: int, count: int, size: int) -> None:
    """Spans hold all that is allowed, certain ones nothing else."""
    allowed = pattern.mask(count, size, first)
    possible, certain = torch.zeros(size, dtype=torch.bool), torch.zeros(size, dtype=torch.bool)
    for lo, hi in pattern.spans(first, first + count, size):
        possible[lo:hi] = True
    for lo, hi in pattern.certain(first, first + count, size):
        assert hi <= size
        certain[lo:hi] = True
    assert not (allowed.any(0) & ~possible).any()
    assert not (certain & ~allowed.all(0)).any()


@given(patterns, st.integers(0, 12), st.integers(1, 9), st.integers(1, 25))
@settings(max_examples=1000, deadline=None)
def test_spans_hold_all_that_is_allowed_and_certain_holds_nothing_else(
    pattern: Pattern, first: int, count: int, size: int
) -> None:
    check_spans(pattern, first, count, size)


@given(patterns, st.integers(1, 20))
@settings(max_examples=200, deadline=None)
def test_step_is_true(pattern: Pattern, size: int) -> None:
    i, j = torch.arange(size)[:, None], torch.arange(size)
    assert not (pattern.mask(size, size) & ((i - j) % pattern.step != 0)).any()


def test_windows_are_listed_tightly() -> None:
    """Otherwise kernels would be right but slow."""
    assert Window(8).spans(100, 104, 1000) == ((92, 112),)
    assert Window(8).certain(100, 104, 1000) == ((95, 109),)
    assert (Window(2) | Global([0, 500])).spans(100, 104, 1000) == ((0, 1), (98, 106), (500, 501))
    assert (Window(8) & Causal()).spans(100, 104, 1000) == ((92, 104),)


def test_random_blocks_are_distinct_reproducible_and_spread() -> None:
    pattern = RandomBlocks(3, 4, seed=1)
    drawn = pattern.drawn(torch.arange(500), size=80)
    assert all(len(set(row)) == 3 for row in drawn.tolist())
    assert torch.equal(drawn, RandomBlocks(3, 4, seed=1).drawn(torch.arange(500), size=80))
    assert not torch.equal(drawn, RandomBlocks(3, 4, seed=2).drawn(torch.arange(500), size=80))
    counts = torch.bincount(drawn.flatten(), minlength=20)
    assert counts.min() > 40 and counts.max() < 115  # 75 expected


def test_more_random_blocks_than_there_are_take_all() -> None:
    assert RandomBlocks(9, 4).mask(10, 10).all()


def test_blocks_from_a_table_of_bool() -> None:
    table = torch.tensor([[True, False, True], [False, True, False]])
    assert Blocks(table, 2) == Blocks([[0, 2], [1]], 2)


def test_blocks_of_bool_are_a_table_and_never_numbers() -> None:
    assert Blocks(torch.eye(2, dtype=torch.bool).numpy(), 2) == Blocks([[0], [1]], 2)
    with pytest.raises(ValueError, match="got True"):
        Blocks([[True, False], [False, True]], 2)


def test_bigbird_is_a_union() -> None:
    pattern = bigbird(6, [0, 1], random=2, block=4, seed=3)
    assert pattern == Window(3) | Global([0, 1]) | RandomBlocks(2, 4, 3)


def test_algebra_simplifies() -> None:
    assert Window(2) | Window(2) == Window(2)
    assert Full() & Window(2) == Window(2)
    assert Full() | Window(2) == Full()
    assert (Window(1) | Causal()) | Strided(2) == Window(1) | (Causal() | Strided(2))


def test_per_head_combines_head_by_head() -> None:
    pattern = per_head([Full(), Window(1)]) & Causal()
    assert pattern == per_head([Causal(), Window(1) & Causal()])
    assert pattern.mask(5, 5).shape == (2, 5, 5)
    with pytest.raises(ValueError, match="2 and of 3 heads"):
        per_head([Full()] * 2) | per_head([Causal()] * 3)


def test_converters() -> None:
    assert Window.from_longformer(512) == Window(256)
    assert Window.from_keras(4) == Window(3)
    assert Window.from_flash(7, 0) == Window(7, 0)
    assert Window.from_flash(-1, 0).mask(4, 4).equal(Causal().mask(4, 4))
    assert LocalMonotonic(10) == Window(10)


def test_patterns_are_values() -> None:
    assert hash(Global([3, 1, 3])) == hash(Global([1, 3]))
    with pytest.raises(AttributeError):
        Strided(4).every = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Window(-1), "Window: before: expected a whole number ≥ 0, got -1"),
        (lambda: Strided(0), "Strided: every: expected a whole number ≥ 1, got 0"),
        (lambda: Dilated(1, 0), "Dilated: gap: expected a whole number ≥ 1, got 0"),
        (lambda: Global([-2]), "Global: positions: expected a whole number ≥ 0, got -2"),
        (lambda: Window.from_longformer(7), "width: expected an even number, got 7"),
        (lambda: Blocks(torch.ones(2, 2), 4), r"table: expected bool \[query blocks, key blocks\], got torch.float32"),
        (lambda: Blocks([0, 1], 4), "Blocks: table: expected a list of key blocks for each query block"),
        (lambda: Blocks([[0.5]], 4), "Blocks: table: expected a whole number ≥ -1, got 0.5"),
        (lambda: Global(None), "Global: positions: expected whole numbers ≥ 0, got None"),
        (lambda: Window(2**31), "expected a whole number ≥ 0 and below 2³¹"),
        (lambda: per_head(Causal()), "per_head: patterns: expected a list"),
        (lambda: per_head([]), "expected a list of at least one pattern"),
    ],
)
def test_bad_arguments_are_named(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
