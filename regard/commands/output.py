"""Where a command writes its results: a file, or standard output."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from regard.runtime.files import open_output


@contextmanager
def open_results(path: Path | None) -> Iterator[TextIO]:
    """Open what `-o` names, as `regard.runtime.files.open_output` does, or standard output if it names nothing."""
    if path is None:
        if not sys.stdout.writable():
            raise ValueError("standard output is closed; expected somewhere to write, or -o")
        yield sys.stdout
        return
    with open_output(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=True)
        try:
            yield text
            text.flush()
        finally:
            text.detach()
