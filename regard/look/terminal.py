"""A table as a grid for the terminal: one row per query, one column per key."""

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

GAP = 2  # cells between columns
MIN_LABEL_CELLS = 12  # the room for a label, however narrow the terminal


def in_colour(out: TextIO) -> bool:
    """Whether to colour the output: only for a terminal that can, and unless NO_COLOR is set (no-color.org)."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def grid(table: Table, width: int | None = None, colours: bool = False) -> str:
    """Return a grid with a bar and a number for each weight; the weights of a row add up to 1.

    Wider tables than the terminal continue below; columns run in reading direction; labels that do not fit are cut.
    """
    width = width or shutil.get_terminal_size((80, 24)).columns
    rows = [_short(name, width // 3) for name in table.rows]
    room = width - _width(rows)
    table = replace(table, rows=rows, columns=[_short(head, room - GAP) for head in table.columns])
    order = list(range(len(table.columns)))
    parts = []
    while order:
        count, used = 1, _column_width(table.columns[order[0]])
        while count < len(order) and used + _column_width(table.columns[order[count]]) <= room:
            used += _column_width(table.columns[order[count]])
            count += 1
        shown, order = order[:count], order[count:]
        parts.append(_part(table, shown if table.column_direction == "ltr" else shown[::-1], colours))
    return "\n\n".join([*parts, *(["\n".join(map(visible, table.footnotes))] if table.footnotes else [])])


def _part(table: Table, shown: list[int], colours: bool) -> str:
    left = _width(table.rows)
    heads = [table.columns[column] for column in shown]
    lines = [" " * left + "".join(_right_aligned(head, _column_width(head)) for head in heads)]
    for name, weights, fractions in zip(table.rows, table.weights.tolist(), table.fractions.tolist(), strict=True):
        cells = [
            _cell(weights[column], fractions[column], _column_width(table.columns[column]), colours) for column in shown
        ]
        lines.append((name + " " * (left - cell_len(name)) + "".join(cells)).rstrip())
    return "\n".join([lines[0].rstrip(), *lines[1:]])


def _cell(weight: float, fraction: float, width: int, colours: bool) -> str:
    """Return a bar and a number, right-aligned."""
    text = f"{bar(fraction)} {weight:.2f}"
    if not colours:
        return _right_aligned(text, width)
    return " " * max(0, width - cell_len(text)) + paint(text, colour(fraction))


def paint(text: str, ground: str) -> str:
    """Return the text with ANSI codes for that background, and black or white for contrast."""
    return f"\x1b[{_ansi_code(38, ink(ground))};{_ansi_code(48, ground)}m{text}\x1b[0m"


def _ansi_code(layer: int, rgb: str) -> str:
    """Return the ANSI code of a colour; layer 38 is the foreground, 48 the background."""
    return f"{layer};2;" + ";".join(str(int(rgb[place : place + 2], 16)) for place in (1, 3, 5))


def bar(weight: float) -> str:
    """Return a bar of one of eight heights; a weight of 1 fills the cell."""
    return " ▁▂▃▄▅▆▇█"[max(0, min(8, round(weight * 8)))]


def _width(names: Sequence[str]) -> int:
    return max(map(cell_len, names), default=0)


def _column_width(head: str) -> int:
    return max(cell_len(head), 6) + GAP


def _right_aligned(text: str, width: int) -> str:
    return " " * max(0, width - cell_len(text)) + text


def _short(label: str, room: int) -> str:
    """Return a label cut to its room, without control characters."""
    text, room = visible(label), max(room, MIN_LABEL_CELLS)
    if cell_len(text) <= room:
        return text
    start, used = "", 0
    for character in graphemes(text):
        used += cell_len(character)
        if used >= room:
            break
        start += character
    return start + "…"
