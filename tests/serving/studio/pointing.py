"""What a person does on the page: dropping files, and pointing at cells."""

from __future__ import annotations

from typing import Any


def drop(tab: Any, name: str, content: str, place: int = 0) -> None:
    """Choose a file, as by dropping it."""
    file = {"name": name, "mimeType": "text/plain", "buffer": content.encode()}
    tab.locator(".drop input").nth(place).set_input_files(file)


def point_at_cell(tab: Any, grid: int, row: int, column: int) -> None:
    """Move the mouse over a cell of one of the grids."""
    cells = tab.locator(".cells").nth(grid)
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    size = cells.evaluate(
        "(cells) => ['--wide', '--high'].map((name) => parseFloat(getComputedStyle(cells).getPropertyValue(name)))"
    )
    tab.mouse.move(box["x"] + (column + 0.5) * size[0], box["y"] + (row + 0.5) * size[1])
