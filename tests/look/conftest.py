"""A browser for the tests that need one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.look.browser import Open


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium: Playwright's own is not downloaded."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, which the extra `dev` brings")
    result = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if result is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=result, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page from a file. In the end: no request but for the file, nothing in the console."""
    contexts, requests, trouble = [], [], []

    def opened(text: str, **settings: Any) -> Any:
        file = tmp_path / f"page{len(contexts)}.html"
        file.write_text(text, encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        tab = context.new_page()
        tab.on("request", lambda request: requests.append(request.url))
        tab.on("console", lambda message: trouble.append(message.text))
        tab.on("pageerror", lambda error: trouble.append(str(error)))
        tab.goto(file.as_uri())
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert trouble == []
    assert [url for url in requests if not url.startswith((tmp_path.as_uri(), "about:srcdoc"))] == []
    assert len([url for url in requests if url.startswith("file:")]) == len(contexts)
