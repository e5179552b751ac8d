"""Requests to a server, as the page sends them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx

File = tuple[str, str | bytes]
"""the name of a file and its content"""


def get(address: str, path: str) -> Any:
    return _answer(httpx.get(f"{address}/api/studio{path}", timeout=60))


def post(address: str, path: str, **body: Any) -> Any:
    return _answer(httpx.post(f"{address}/api/studio{path}", json=body, timeout=60))


def send(address: str, path: str, files: Sequence[File], **fields: Any) -> Any:
    """Send files as the browser does."""
    parts = [("files", (name, content if isinstance(content, bytes) else content.encode())) for name, content in files]
    return _answer(httpx.post(f"{address}/api/studio{path}", files=parts, data=fields, timeout=60))


def _answer(response: httpx.Response) -> Any:
    """Return the content of a response; of an error, its status and message."""
    content = response.json()
    return content if response.is_success else (response.status_code, content["error"])


def tsv(pairs: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def events(text: str) -> list[tuple[str, Any]]:
    """Return the server-sent events of a stream: name and data."""
    blocks = [dict(line.split(": ", 1) for line in block.split("\n")) for block in text.strip().split("\n\n")]
    return [(block["event"], json.loads(block["data"])) for block in blocks]
