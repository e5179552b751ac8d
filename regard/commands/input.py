"""What a command reads: texts that were given, or the lines of a file or of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

LINES = 256
"""lines read before they are worked on together"""


def chunks(text: list[str] | None, path: Path | None) -> Iterator[list[str]]:
    """Many lines at a time; of a person typing, one."""
    if text and path is not None:
        raise ValueError("expected texts or --input, got both")
    return _chunks(_lines(text, path))


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    count = 1 if sys.stdin.isatty() else LINES
    while chunk := list(islice(lines, count)):
        yield chunk


def _lines(text: list[str] | None, path: Path | None) -> Iterator[str]:
    from regard.text.pairs import read_lines

    if text:
        return iter(text)
    return read_lines(sys.stdin.buffer if path is None else path)
