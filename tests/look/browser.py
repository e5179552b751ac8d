"""Looking at a page in a browser, and pointing at what is in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from regard.look.trace import Trace

Open = Callable[..., Any]
"""opens a page from its text; further arguments are the browser's settings"""


def report(weight: float) -> str:
    """As the page has it: in steps of 1/255."""
    return f"{round(float(weight) * 255) / 255:.2f}"


def at(trace: Trace, row: int, column: int) -> str:
    return report(trace.by_words()[2][row, column])


def point(tab: Any, row: int, column: int) -> None:
    """Move the mouse over a cell of the grid, wherever it is drawn."""
    box = tab.locator(".cells").first.bounding_box()
    size = tab.evaluate(
        "() => ['--wide', '--high'].map((name) => parseFloat(getComputedStyle(document.querySelector('.grid'))"
        ".getPropertyValue(name)))"
    )
    tab.mouse.move(box["x"] + (column + 0.5) * size[0], box["y"] + (row + 0.5) * size[1])


def summary(tab: Any) -> str:
    return " ".join(tab.locator(".summary").inner_text().split())


def lit(tab: Any, where: str) -> list[str]:
    return list(tab.locator(f"{where}.on").all_inner_texts())


def lit_heads(tab: Any) -> list[str]:
    return list(tab.locator(".head.lit").all_inner_texts())
