"""A table as a grid for the terminal: a row for each word that looks, a column for each that is looked at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import TextIO

from rich.cells import cell_len

from regard.look.colours import colour, ink
from regard.look.table import Table, visible
from regard.text.boundaries import graphemes

GAP = 2
"""cells between columns"""
LEAST = 12
"""cells that a label has room for, however narrow the terminal"""


def in_colour(out: TextIO) -> bool:
    """Colours are for people at terminals that can show them, who have not asked for none (no-color.org)."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def grid(table: Table, width: int | None = None, colours: bool = False) -> str:
    """Each cell a weight, as a bar and a number; cells that share a row add up to 1. Wide tables go on below.

    Where the source runs from right to left, so do the columns. Labels that would not fit are cut.
    """
    width = width or shutil.get_terminal_size((80, 24)).columns
    rows = [_short(name, width // 3) for name in table.rows]
    room = width - _width(rows)
    table = replace(table, rows=rows, columns=[_short(head, room - GAP) for head in table.columns])
    order = list(range(len(table.columns)))
    parts = []
    while order:
        count, used = 1, _cell(table.columns[order[0]])
        while count < len(order) and used + _cell(table.columns[order[count]]) <= room:
            used += _cell(table.columns[order[count]])
            count += 1
        shown, order = order[:count], order[count:]
        parts.append(_part(table, shown if table.column_direction == "ltr" else shown[::-1], colours))
    return "\n\n".join([*parts, *(["\n".join(map(visible, table.footnotes))] if table.footnotes else [])])


def _part(table: Table, shown: list[int], colours: bool) -> str:
    left = _width(table.rows)
    heads = [table.columns[column] for column in shown]
    lines = [" " * left + "".join(_right(head, _cell(head)) for head in heads)]
    for name, weights, shares in zip(table.rows, table.weights.tolist(), table.shares.tolist(), strict=True):
        cells = [_shown(weights[column], shares[column], _cell(table.columns[column]), colours) for column in shown]
        lines.append((name + " " * (left - cell_len(name)) + "".join(cells)).rstrip())
    return "\n".join([lines[0].rstrip(), *lines[1:]])


def _shown(weight: float, share: float, width: int, colours: bool) -> str:
    """A bar and a number, at the right end of the cell."""
    text = f"{bar(share)} {weight:.2f}"
    if not colours:
        return _right(text, width)
    return " " * max(0, width - cell_len(text)) + paint(text, colour(share))


def paint(text: str, ground: str) -> str:
    """On that ground, in an ink that can be read on it."""
    return f"\x1b[{_code(38, ink(ground))};{_code(48, ground)}m{text}\x1b[0m"


def _code(which: int, rgb: str) -> str:
    """Of ANSI: 38 is ink, 48 is ground."""
    return f"{which};2;" + ";".join(str(int(rgb[place : place + 2], 16)) for place in (1, 3, 5))


def bar(weight: float) -> str:
    """One of eight heights: a weight of 1 fills the cell."""
    return " ▁▂▃▄▅▆▇█"[max(0, min(8, round(weight * 8)))]


def _width(names: Sequence[str]) -> int:
    return max(map(cell_len, names), default=0)


def _cell(head: str) -> int:
    return max(cell_len(head), 6) + GAP


def _right(text: str, width: int) -> str:
    return " " * max(0, width - cell_len(text)) + text


def _short(label: str, room: int) -> str:
    """As many of its characters as there is room for; none of them moves the cursor or changes colours."""
    text, room = visible(label), max(room, LEAST)
    if cell_len(text) <= room:
        return text
    kept, used = "", 0
    for character in graphemes(text):
        used += cell_len(character)
        if used >= room:
            break
        kept += character
    return kept + "…"
