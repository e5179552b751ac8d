"""The studio's page in a browser: no console message, no error, no request to anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PHONE = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}


@contextmanager
def opened(browser: Any, address: str, view: str, refused: int | None = None, **settings: Any) -> Iterator[Any]:
    """Open a view, such as "corpus?sort=score"; `refused`: the status of requests that the server is to refuse."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
    tab = context.new_page()
    requests: list[str] = []
    trouble: list[str] = []
    tab.on("request", lambda request: requests.append(request.url))
    refusal = f"the server responded with a status of {refused} "  # a browser logs it, whatever the page makes of it
    tab.on("console", lambda message: refusal in message.text or trouble.append(message.text))
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    try:
        tab.goto(f"{address}/#/{view}")
        yield tab
        assert fits(tab)
    finally:
        context.close()
    assert trouble == []
    assert [url for url in requests if not url.startswith((f"{address}/", "blob:"))] == []


def fits(tab: Any) -> bool:
    """Return whether the page is no wider than the window."""
    return bool(tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


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
