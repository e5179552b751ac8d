"""Patterns over an image: an h × w grid of cells, flattened row by row.

Cell (r, c) is at position first + r·w + c. Positions before `first` and after the last cell, such as a class token, are
not part of the grid: a grid pattern allows nothing there, but `Global` can be added:

    grid = Grid(14, 14, first=1)
    grid.window(2) | Global([0])        # each patch attends to its neighbours and the class token, which attends to all

A row is a run of positions, a column has stride w: kernels compute rows in tiles and columns in residue classes.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from regard.core import spans as runs
from regard.core.checks import whole_number
from regard.core.patterns import Pattern, Window
from regard.core.spans import Spans


@dataclass(frozen=True)
class Grid:
    """A grid of h × w cells, row by row, the first of them at position `first`. Its methods return patterns."""

    height: int
    width: int
    first: int = 0

    def __post_init__(self) -> None:
        for name, minimum in (("height", 1), ("width", 1), ("first", 0)):
            whole_number("Grid", name, getattr(self, name), minimum)
        whole_number("Grid", "first + height · width", self.end)

    @property
    def end(self) -> int:
        """The position after the last cell."""
        return self.first + self.height * self.width

    def window(self, rows: int | None, columns: int | str | None = "same") -> Pattern:
        """Return a window of ± `rows` rows and ± `columns` columns; `window(n)` is a square, None is no bound."""
        return GridWindow(self, rows, rows if columns == "same" else columns)  # type: ignore[arg-type]

    def row(self) -> Pattern:
        """Return the pattern of cells in the same row."""
        return GridWindow(self, 0, None)

    def column(self) -> Pattern:
        """Return the pattern of cells in the same column."""
        return GridWindow(self, None, 0)

    def axial(self) -> Pattern:
        """Return the pattern of cells in the same row or column (Ho et al. 2019, Huang et al. 2019)."""
        return self.row() | self.column()

    def around(self, pattern: Pattern, row: int, column: int) -> str:
        """Draw what the cell (row, column) may attend to, as text in the shape of the grid; the cell itself is ◆."""
        if not (0 <= row < self.height and 0 <= column < self.width):
            raise ValueError(f"Grid: expected a cell of {self.height} × {self.width}, got ({row}, {column})")
        at = row * self.width + column
        mask = pattern.mask(1, self.end, self.first + at)
        if mask.dim() > 2:
            raise ValueError(f"Grid: pattern: expected one for all heads, got {pattern}")
        marks = ["■" if allowed else "·" for allowed in mask[0, self.first :].tolist()]
        marks[at] = "◆"
        return "\n".join(" ".join(marks[r * self.width : (r + 1) * self.width]) for r in range(self.height))

    def __str__(self) -> str:
        start = f", {self.first}" if self.first else ""
        return f"grid({self.height}, {self.width}{start})"


@dataclass(frozen=True, repr=False)
class GridWindow(Pattern):
    """|r_i − r_j| ≤ rows and |c_i − c_j| ≤ columns, for cells i and j of the grid; None is no bound."""

    grid: Grid
    rows: int | None
    columns: int | None

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            if getattr(self, name) is not None:
                whole_number("Grid.window", name, getattr(self, name))

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        grid = self.grid
        a, b = i - grid.first, j - grid.first
        allowed = Inside(grid.first, grid.end).allows(i, j, size)
        if self.rows is not None:
            allowed = allowed & ((a // grid.width - b // grid.width).abs() <= self.rows)
        if self.columns is not None:
            allowed = allowed & ((a % grid.width - b % grid.width).abs() <= self.columns)
        return allowed

    def spans(self, first: int, last: int, size: int) -> Spans:
        grid = self.grid
        first, last = max(first, grid.first), min(last, grid.end)
        if first >= last:
            return ()
        (top, left), (bottom, right) = self._cell(first), self._cell(last - 1)
        visible: list[tuple[int, int]] = []
        for row in range(max(0, top - self._row_reach), min(grid.height, bottom + self._row_reach + 1)):
            # The queries' rows that reach this row; only the first and the last of all may be incomplete.
            upper, lower = max(top, row - self._row_reach), min(bottom, row + self._row_reach)
            lowest = left if upper == lower == top else 0
            highest = right if upper == lower == bottom else grid.width - 1
            visible.append(self._span(row, lowest - self._column_reach, highest + self._column_reach))
        return runs.clip(runs.union(visible), size)

    def certain(self, first: int, last: int, size: int) -> Spans:
        grid = self.grid
        if first < grid.first or last > grid.end:
            return ()
        (top, left), (bottom, right) = self._cell(first), self._cell(last - 1)
        if bottom > top:
            left, right = 0, grid.width - 1
        lowest, highest = max(0, right - self._column_reach), min(grid.width - 1, left + self._column_reach)
        if lowest > highest:
            return ()
        rows = range(max(0, bottom - self._row_reach), min(grid.height, top + self._row_reach + 1))
        return runs.clip(runs.union(self._span(row, lowest, highest) for row in rows), size)

    @property
    def step(self) -> int:
        return self.grid.width if self.columns == 0 else 1

    @property
    def unstrided(self) -> Pattern:
        if self.step == 1:
            return self
        inside = Inside(self.grid.first, self.grid.end)
        return inside if self.rows is None else inside & Window(self.rows * self.grid.width)

    @property
    def _row_reach(self) -> int:
        """How many rows up or down are allowed."""
        return self.grid.height if self.rows is None else self.rows

    @property
    def _column_reach(self) -> int:
        """How many columns left or right are allowed."""
        return self.grid.width if self.columns is None else self.columns

    def _cell(self, position: int) -> tuple[int, int]:
        """Return (row, column) of a position."""
        return divmod(position - self.grid.first, self.grid.width)

    def _span(self, row: int, lowest: int, highest: int) -> tuple[int, int]:
        """Return the span of columns lowest … highest of a row."""
        start = self.grid.first + row * self.grid.width
        return start + max(0, lowest), start + min(self.grid.width - 1, highest) + 1

    def __str__(self) -> str:
        if (self.rows, self.columns) == (0, None):
            return f"{self.grid}.row"
        if (self.rows, self.columns) == (None, 0):
            return f"{self.grid}.column"
        sides = [self.rows] if self.rows == self.columns else [self.rows, self.columns]
        return f"{self.grid}.window({', '.join('none' if side is None else str(side) for side in sides)})"


@dataclass(frozen=True, repr=False)
class Inside(Pattern):
    """first ≤ i, j < end: what remains of a grid's column within its residue class."""

    first: int
    end: int

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return (i >= self.first) & (i < self.end) & (j >= self.first) & (j < self.end)

    def spans(self, first: int, last: int, size: int) -> Spans:
        overlaps = first < self.end and last > self.first
        return runs.clip([(self.first, self.end)], size) if overlaps else ()

    def certain(self, first: int, last: int, size: int) -> Spans:
        return self.spans(first, last, size) if self.first <= first and last <= self.end else ()
