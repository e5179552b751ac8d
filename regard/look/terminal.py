"""A trace as a grid for the terminal: a row a word of the translation, a column a word of the source."""

from __future__ import annotations

import shutil

from rich.cells import cell_len

from regard.look.trace import Matrix, Span, Trace

END = "⏹"
"""the end token, which also looks and can be looked at"""


def grid(trace: Trace, width: int | None = None) -> str:
    """Each cell a weight, as a bar and a number; cells that share a row add up to 1. Wide tables go on below."""
    rows, columns, weights = trace.by_words()
    names = [_name(word) for word in rows]
    heads = [_name(word) for word in columns]
    left = max((cell_len(name) for name in names), default=0)
    room = (width or shutil.get_terminal_size((120, 24)).columns) - left
    parts = []
    first = 0
    while first < len(heads):
        last, used = first, 0
        while last < len(heads) and (last == first or used + _cell(heads[last]) <= room):
            used += _cell(heads[last])
            last += 1
        parts.append(_part(names, heads[first:last], weights[:, first:last], left))
        first = last
    return "\n\n".join(parts)


def _part(names: list[str], heads: list[str], weights: Matrix, left: int) -> str:
    lines = [" " * left + "".join(_right(head, _cell(head)) for head in heads)]
    for name, row in zip(names, weights.tolist(), strict=True):
        cells = (_right(f"{bar(weight)} {weight:.2f}", _cell(head)) for head, weight in zip(heads, row, strict=True))
        lines.append(name + " " * (left - cell_len(name)) + "".join(cells))
    return "\n".join(line.rstrip() for line in lines)


def bar(weight: float) -> str:
    """One of eight heights: a weight of 1 fills the cell."""
    return " ▁▂▃▄▅▆▇█"[max(0, min(8, round(weight * 8)))]


def _name(word: Span) -> str:
    return word.text or END


def _cell(head: str) -> int:
    return max(cell_len(head), 6) + 2


def _right(text: str, width: int) -> str:
    return " " * max(0, width - cell_len(text)) + text
