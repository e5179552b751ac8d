"""Files of traces: JSON, one trace per line (docs/trace.md describes the format)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regard.look.trace import Trace
from regard.runtime.files import write_file


def write(traces: Iterable[Trace], path: str | Path) -> None:
    """Write traces to a file, one per line."""
    lines = [json.dumps(trace.as_dict(), ensure_ascii=False, separators=(",", ":")) + "\n" for trace in traces]
    write_file(path, "".join(lines))


def read(path: str | Path) -> list[Trace]:
    """Return the traces of a file: one per line, or one that may span several. A ValueError says what is damaged."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: expected traces as JSON, which is UTF-8, and this is not") from None
    try:
        objects = [json.loads(text)]
    except (ValueError, RecursionError):
        objects = [_read_line(path, number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not objects:
        raise ValueError(f"{path}: expected at least one trace, got an empty file")
    traces = []
    for number, json_object in enumerate(objects, 1):
        try:
            traces.append(Trace.from_dict(json_object))
        except ValueError as error:
            raise ValueError(f"{path}, trace {number}: {error}") from None
    return traces


def _read_line(path: str | Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}, line {number}: expected traces as JSON, one a line: {error}") from None
