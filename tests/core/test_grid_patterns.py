"""Patterns over a grid: against their definitions, in every kernel against the reference, and what they cost."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard import (
    Causal,
    Entmax15,
    Global,
    Grid,
    Hard,
    Pattern,
    Softmax,
    Sparsemax,
    Strided,
    Window,
    attention,
    per_head,
)
from regard.core.grid_patterns import GridWindow
from regard.core.kernels.cpu.parts import layout_of
from regard.core.kernels.cpu.tile_kernels import Regrouped, Tiles, Union
from regard.core.kernels.hard import HardChoice
from regard.core.pattern_text import parse
from regard.core.plan import HEADS
from tests.core.drawn import NORMALIZERS, Case, cases
from tests.core.kernels.test_drawn_cases import check
from tests.core.test_patterns import atoms, check_spans

many = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
side = st.none() | st.integers(0, 3)
grids = st.builds(Grid, st.integers(1, 4), st.integers(1, 5), st.integers(0, 3))
windows = st.builds(GridWindow, grids, side, side)
columns = st.builds(lambda grid, rows: grid.window(rows, 0), grids.filter(lambda grid: grid.width > 1), side)
combined = st.one_of(windows, st.builds(Pattern.__and__, windows, atoms), st.builds(Pattern.__or__, windows, atoms))
strided = st.one_of(columns, st.builds(Pattern.__and__, columns, atoms))


def near(grid: Grid, rows: int | None, across: int | None):  # type: ignore[no-untyped-def]
    """The definition, cell by cell."""
    cells = {grid.first + r * grid.width + c: (r, c) for r in range(grid.height) for c in range(grid.width)}

    def allowed(i: int, j: int) -> bool:
        if i not in cells or j not in cells:
            return False
        (r, c), (s, d) = cells[i], cells[j]
        return (rows is None or abs(r - s) <= rows) and (across is None or abs(c - d) <= across)

    return allowed


@pytest.mark.parametrize("grid", [Grid(4, 5), Grid(3, 4, first=1), Grid(1, 6), Grid(5, 1, first=2)])
@pytest.mark.parametrize("position", [0, 3])
def test_definitions(grid: Grid, position: int) -> None:
    made = [
        (grid.window(1), near(grid, 1, 1)),
        (grid.window(2, 1), near(grid, 2, 1)),
        (grid.row(), near(grid, 0, None)),
        (grid.column(), near(grid, None, 0)),
        (grid.axial(), lambda i, j: near(grid, 0, None)(i, j) or near(grid, None, 0)(i, j)),
    ]
    for pattern, definition in made:
        expected = [[bool(definition(position + t, j)) for j in range(22)] for t in range(20)]
        assert pattern.mask(20, 22, position).tolist() == expected, pattern


@given(combined, st.integers(0, 12), st.integers(1, 9), st.integers(1, 25))
@settings(max_examples=1000, deadline=None)
def test_spans_hold_all_that_is_allowed_and_certain_holds_nothing_else(
    pattern: Pattern, first: int, count: int, size: int
) -> None:
    check_spans(pattern, first, count, size)


@given(combined, st.integers(1, 20))
@settings(max_examples=300, deadline=None)
def test_steps_are_true_and_what_is_left_beside_them_is_all(pattern: Pattern, size: int) -> None:
    i, j = torch.arange(size)[:, None], torch.arange(size)
    same_class = (i - j) % pattern.step == 0
    assert torch.equal(pattern.mask(size, size), pattern.unstrided.mask(size, size) & same_class)


@given(cases([Softmax(), Sparsemax(), Entmax15()], combined))
@many
@pytest.mark.usefixtures("small_tiles")
def test_tiles(case: Case) -> None:
    check(Tiles(), case)


@given(cases([Softmax(), Sparsemax()], strided, by_pair=False))
@many
@pytest.mark.usefixtures("small_tiles")
def test_regrouped(case: Case) -> None:
    check(Regrouped(), case)


@given(cases([Softmax()], st.builds(Pattern.__or__, strided, combined), by_pair=False))
@many
@pytest.mark.usefixtures("small_tiles")
def test_union(case: Case) -> None:
    check(Union(), case)


@given(cases([n for n in NORMALIZERS if isinstance(n, Hard)], combined))
@many
@pytest.mark.usefixtures("small_tiles")
def test_hard(case: Case) -> None:
    check(HardChoice(), case)


@given(cases(chosen=st.one_of(windows, columns), by_head=True))
@many
@pytest.mark.usefixtures("small_tiles")
def test_heads(case: Case) -> None:
    check(HEADS, case)


def test_spans_are_tight() -> None:
    """Otherwise kernels would be right but slow."""
    grid = Grid(10, 100, first=1)
    assert grid.window(1, 2).spans(301, 311, 2000) == ((201, 213), (301, 313), (401, 413))
    assert grid.window(1, 2).certain(351, 353, 2000) == ((250, 254), (350, 354), (450, 454))
    assert grid.window(1, 2).spans(396, 404, 2000) == ((294, 506),)  # the end of a row and the start of the next
    assert grid.row().spans(301, 311, 2000) == grid.row().certain(301, 311, 2000) == ((301, 401),)
    assert grid.row().spans(0, 1, 2000) == ()
    assert grid.column().step == 100


def test_a_picture_of_64_by_64_is_computed_leanly() -> None:
    """In tiles that hold few pairs beside those that are allowed: a row costs rows, a column costs columns."""
    grid, size = Grid(64, 64), 64 * 64

    def computed(pattern: Pattern) -> float:
        tiles = [
            (part.step, tile) for part in layout_of(pattern, size, size, 0).parts(regroup=True) for tile in part.tiles
        ]
        return sum(step * tile.height * tile.width for step, tile in tiles) / size**2

    assert computed(grid.column()) == 1 / 64
    assert computed(grid.row()) == 2 / 64  # a tile holds two rows
    assert computed(grid.axial()) == 3 / 64
    assert computed(grid.window(3)) < 8 / 64
    query, key, value = torch.randn(3, 1, 2, size, 8).unbind(0)
    result = attention(query, key, value, pattern=grid.axial()).context
    mask = grid.axial().mask(size, size)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_rows_and_columns_are_attention_inside_each() -> None:
    """torch's attention over the picture turned so that a row, or a column, is a sequence."""
    query, key, value = torch.randn(3, 2, 12, 20, 8).unbind(0)  # [B, h, w, D]
    sdpa = torch.nn.functional.scaled_dot_product_attention
    flattened = [x.flatten(1, 2) for x in (query, key, value)]
    rows = attention(*flattened, pattern=Grid(12, 20).row()).context.unflatten(1, (12, 20))
    torch.testing.assert_close(rows, sdpa(query, key, value))
    columns = attention(*flattened, pattern=Grid(12, 20).column()).context.unflatten(1, (12, 20))
    turned = sdpa(*(x.transpose(1, 2) for x in (query, key, value))).transpose(1, 2)
    torch.testing.assert_close(columns, turned)


def test_windows_are_what_unfold_finds() -> None:
    """torch's unfold lists the neighbourhood of every cell."""
    height, width, reach = 5, 7, 2
    numbers = torch.arange(1.0, height * width + 1).view(1, 1, height, width)  # 0 is what lies outside
    side = 2 * reach + 1
    around = torch.nn.functional.unfold(numbers, side, padding=reach)[0].T.long()  # [cells, side²]
    expected = torch.zeros(height * width, height * width + 1, dtype=torch.bool).scatter(1, around, True)[:, 1:]
    assert torch.equal(Grid(height, width).window(reach).mask(35, 35), expected)


@given(combined)
@settings(max_examples=300, deadline=None)
def test_text_of_a_pattern_is_read_back(pattern: Pattern) -> None:
    assert parse(str(pattern)) == pattern


def test_text() -> None:
    grid = Grid(4, 6, first=1)
    assert parse("grid(4, 6, 1).window(2) | global(0)") == grid.window(2) | Global([0])
    assert parse("grid(4, width=6, first=1).axial & causal") == grid.axial() & Causal()
    assert parse("grid(4, 4).window(1, none)") == Grid(4, 4).window(1, None)
    assert parse("per_head(grid(4, 4).row, grid(4, 4).column())") == per_head([Grid(4, 4).row(), Grid(4, 4).column()])
    assert str(grid.axial()) == "grid(4, 6, 1).row | grid(4, 6, 1).column"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid(4, 4)", "expected '.' at column 11"),
        ("grid(4, 4).", "expected a pattern at column 12"),
        ("grid(4)", r"expected grid\(height, width, \[first\]\), got grid\(4\)"),
        ("grid(4, 4).colum", "unknown name 'colum'; did you mean 'column'"),
        ("grid(4, 4).row(2)", r"expected row\(\), got row\(2\)"),
        ("grid(0, 4).row", "height: expected a whole number ≥ 1, got 0"),
        ("grid(99999, 99999).row", "first \\+ height · width: .* below 2³¹"),
        ("causal.row", "expected the end of the text"),
    ],
)
def test_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)
    with pytest.raises(ValueError, match="rows: expected a whole number"):
        Grid(4, 4).window(-1)


def test_around_a_cell() -> None:
    grid = Grid(3, 5, first=2)
    assert grid.around(grid.window(1), 0, 1) == "■ ◆ ■ · ·\n■ ■ ■ · ·\n· · · · ·"
    assert grid.around(grid.column() | Global([2]), 1, 3) == "■ · · ■ ·\n· · · ◆ ·\n· · · ■ ·"
    with pytest.raises(ValueError, match=r"a cell of 3 × 5, got \(3, 0\)"):
        grid.around(Window(1), 3, 0)
    with pytest.raises(ValueError, match="one for all heads"):
        grid.around(per_head([Strided(2)]), 0, 0)
