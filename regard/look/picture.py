"""Attention over a picture: for each that looks, the picture lit where it looked, and the weights themselves below.

What got no weight fades into the paper and what got most stays as it is, so that what was looked at is seen in its own
colours; below, the shades of all other views. Patches have names as squares of a chess board have, "a1" top left, so
that a trace of a picture is a trace like any other: all views of words show it too.
"""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.look.colours import DARK_PAPER, LIGHT_PAPER, level
from regard.look.layout import MARGIN, Cell, Words, written
from regard.look.svg import document, element
from regard.look.table import Table
from regard.look.trace import Side, Span
from regard.runtime.files import write_file

SIDE = 96.0
"""of a panel, its longer one"""
GAP = 12.0
A_ROW = 10
"""panels beside each other"""
VEIL = 0.9
"""how far what got no weight fades"""
FRAMED = 0.5
"""patches with at least this share of the largest weight are framed"""

Pixels = np.ndarray[Any, np.dtype[Any]]


def patches(height: int, width: int) -> Side:
    """The patches of a picture as a text of their names, row by row: a1 b1 c1 … a2 b2 …"""
    names = [f"{_letters(column)}{row + 1}" for row in range(height) for column in range(width)]
    starts = np.cumsum([0, *(len(name) + 1 for name in names[:-1])]).tolist()
    spans = [Span(name, start, start + len(name)) for name, start in zip(names, starts, strict=True)]
    return Side(" ".join(names), spans)


def overlay(table: Table, picture: Pixels, height: int, width: int) -> str:
    """SVG: `table` has a column for each of height × width patches, row by row.

    picture [h, w] or [h, w, 3], numbers from 0 to 255 if whole, else from 0 to 1. All panels are lit by one measure, so
    that who looks at much of it and who looks at one place can be told apart.
    """
    if len(table.columns) != height * width:
        raise ValueError(f"table: expected a column for each of {height} × {width} patches, got {len(table.columns)}")
    pixels = _as_bytes(picture)
    scale = SIDE / max(pixels.shape[:2])
    wide, high = pixels.shape[1] * scale, pixels.shape[0] * scale
    uri = "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")
    most = max(float(table.weights.max(initial=0)), 1e-6)
    top = MARGIN + (24 if table.title else 0)
    elements = [element(Words(" · ".join(table.title), MARGIN, MARGIN + 7, 13))] if table.title else []
    elements += _panel(uri, (MARGIN, top), (wide, high))
    elements.append(element(Words("the picture", MARGIN + wide / 2, top + high + 14, edge="middle")))
    down = 2 * high + 28 + GAP
    used: set[int] = set()
    for number, (label, weights) in enumerate(zip(table.rows, table.weights, strict=True), 1):
        line, place = divmod(number, A_ROW)
        corner = MARGIN + place * (wide + GAP), top + line * down
        elements += _panel(uri, corner, (wide, high))
        elements += _lit(weights.reshape(height, width) / most, corner, (wide / width, high / height))
        middle = corner[0] + wide / 2
        elements.append(element(Words(label, middle, corner[1] + high + 14, 14, False, table.row_direction, "middle")))
        below = corner[0], corner[1] + high + 28
        cells = list(_cells(table, number - 1, weights, most, below, (wide / width, high / height), width))
        used |= {cell.level for cell in cells}
        elements += map(element, cells)
    across = min(A_ROW, len(table.rows) + 1)
    bottom = top + ((len(table.rows) + A_ROW) // A_ROW) * down
    legend = _legend(most, MARGIN, bottom + 4)
    used |= {item.level for item in legend if isinstance(item, Cell)}
    elements += map(element, legend)
    whole = max(2 * MARGIN + across * (wide + GAP) - GAP, 220.0)
    spoken = f"what was looked at in a picture, by: {' '.join(table.rows)}"
    return document(whole, bottom + 16 + MARGIN, elements, sorted(used), spoken)


def page(pictures: Sequence[str], title: str = "What was looked at in the picture") -> str:
    """One page of SVGs that needs nothing else; light or dark as the reader's screen is."""
    style = "body{margin:1rem;display:flex;flex-wrap:wrap;gap:1.5rem;align-items:flex-start;"
    style += f"background:{LIGHT_PAPER.ground}}}svg{{max-width:100%;height:auto}}"
    style += f"@media(prefers-color-scheme:dark){{body{{background:{DARK_PAPER.ground}}}}}"
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        + "\n".join(pictures)
        + "</body>\n</html>\n"
    )


def save(shown: Sequence[tuple[Table, Pixels]], height: int, width: int, path: str | Path) -> None:
    """As .svg, of one, or as .html, of any number."""
    target = Path(path)
    if target.suffix.lower() not in (".svg", ".html") or (target.suffix.lower() == ".svg" and len(shown) != 1):
        raise ValueError(f"path: expected a name that ends in .html, or for one picture in .svg, got {target.name!r}")
    drawn = [overlay(table, picture, height, width) for table, picture in shown]
    text = drawn[0] if target.suffix.lower() == ".svg" else page(drawn)
    write_file(target, text)


def png(pixels: Pixels) -> bytes:
    """uint8 [h, w] or [h, w, 3] as PNG."""
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 else 0
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], 1).tobytes()  # each line as it is: filter 0

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")


def _as_bytes(picture: Pixels) -> Pixels:
    picture = np.asarray(picture)
    if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] != 3) or 0 in picture.shape:
        raise ValueError(f"picture: expected [h, w] or [h, w, 3], got {list(picture.shape)}")
    if picture.dtype.kind == "f":
        picture = np.nan_to_num(picture) * 255
    return np.clip(np.round(picture), 0, 255).astype(np.uint8)


def _panel(uri: str, corner: tuple[float, float], size: tuple[float, float]) -> list[str]:
    box = f'x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
    # Few pixels are shown as they are, not blurred.
    return [f'<image {box} preserveAspectRatio="none" style="image-rendering:pixelated" href="{uri}"/>']


def _lit(shares: Pixels, corner: tuple[float, float], cell: tuple[float, float]) -> Iterator[str]:
    """Veils over what got little, then frames around what got most."""
    framed = []
    for (row, column), share in np.ndenumerate(shares):
        x, y = corner[0] + column * cell[0], corner[1] + row * cell[1]
        box = f'x="{x:.1f}" y="{y:.1f}" width="{cell[0]:.1f}" height="{cell[1]:.1f}"'
        veil = VEIL * (1 - float(share))
        if veil >= 0.01:
            yield f'<rect class="ground" {box} fill-opacity="{veil:.2f}" shape-rendering="crispEdges"/>'
        if share >= FRAMED:
            framed.append(f'<rect class="link" {box} stroke-width="{0.5 + 1.5 * share:.1f}"/>')
    yield from framed


def _cells(
    table: Table,
    row: int,
    weights: Pixels,
    most: float,
    corner: tuple[float, float],
    cell: tuple[float, float],
    width: int,
) -> Iterator[Cell]:
    gap = 1.0 if min(cell) >= 10 else 0.0
    for number, weight in enumerate(weights.tolist()):
        x, y = corner[0] + number % width * cell[0], corner[1] + number // width * cell[1]
        tooltip = f"{table.rows[row]} ← {table.columns[number]}: {written(weight)}"
        yield Cell(x, y, cell[0] - gap, cell[1] - gap, level(weight / most), "", tooltip)


def _legend(most: float, x: float, y: float) -> list[Cell | Words]:
    shades = [Cell(x + 14 + 10 * step, y - 5, 10, 10, level(step / 12)) for step in range(13)]
    return [Words("0", x, y), *shades, Words(f"{most:.2g}", x + 150, y)]


def _letters(column: int) -> str:
    """a … z, aa, ab …"""
    found = ""
    while column >= 0:
        column, letter = divmod(column, 26)
        found, column = chr(ord("a") + letter) + found, column - 1
    return found
