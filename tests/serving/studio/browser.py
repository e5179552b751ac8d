"""Watching the studio in a browser: the console, requests to other places, and what axe-core finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parents[1] / "clients" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


@contextmanager
def studio_tab(browser: Any, address: str, path: str = "", **settings: Any) -> Iterator[Any]:
    """Open the studio at `path`, such as `#/look?text=…`. In the end: nothing in the console, no foreign request.

    A test that makes the server refuse something removes the browser's message about it from `tab.console`.
    """
    options = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"} | settings
    context = browser.new_context(**options)
    context.set_default_timeout(15_000)
    tab = context.new_page()
    console: list[str] = []
    requests: list[str] = []
    tab.on("console", lambda message: console.append(message.text))
    tab.on("pageerror", lambda error: console.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.console = console
    try:
        tab.goto(f"{address}/{path}")
        yield tab
    finally:
        context.close()
    assert console == []
    assert [url for url in requests if not url.startswith((address, "blob:", "data:"))] == []


def check_accessibility(tab: Any) -> None:
    """Assert that axe-core finds no serious violation on the page as it is; skip if axe-core is not installed."""
    if not AXE.is_file():
        pytest.skip("needs axe-core: npm ci in tests/serving/clients")
    tab.evaluate(AXE.read_text(encoding="utf-8"))
    result = tab.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    found = [
        f"{violation['id']}: {violation['help']}: {node['html'][:200]}"
        for violation in result["violations"]
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ]
    assert not found, "\n".join(found)


def fits(tab: Any) -> bool:
    """Return whether the page needs no sideways scrolling."""
    return bool(tab.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"))
