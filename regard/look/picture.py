"""Attention over a picture: for each query a copy of the picture, overlaid with its weights, and the weights below.

Patches without weight fade into the background and the patch with the largest weight stays as it is, so that what was
attended to keeps its own colours; the weights below use the shades of all other views. Patches are named like the
squares of a chess board, "a1" top left, so that all views of words can show a trace of a picture, too.
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
from regard.look.layout import MARGIN, Cell, TextLabel, legend, written
from regard.look.svg import document, element
from regard.look.table import Table
from regard.look.trace import Side
from regard.look.words import Span
from regard.runtime.files import write_file

PANEL_SIDE = 96.0  # the longer side of a panel
PANEL_GAP = 12.0
PANELS_PER_ROW = 10
VEIL_OPACITY = 0.9  # of the veil over a patch without weight
FRAME_THRESHOLD = 0.5  # patches with at least this fraction of the largest weight are framed

Pixels = np.ndarray[Any, np.dtype[Any]]
Point = tuple[float, float]  # x and y, or width and height


def patches(height: int, width: int) -> Side:
    """Return the patches of a picture as a text of their names, row by row: a1 b1 c1 … a2 b2 …"""
    names = [f"{_letters(column)}{row + 1}" for row in range(height) for column in range(width)]
    starts = np.cumsum([0, *(len(name) + 1 for name in names[:-1])]).tolist()
    spans = [Span(name, start, start + len(name)) for name, start in zip(names, starts, strict=True)]
    return Side(" ".join(names), spans)


def overlay(table: Table, picture: Pixels, height: int, width: int) -> str:
    """Return an SVG with a panel for each row of `table`, whose columns are the height × width patches, row by row.

    picture [h, w] or [h, w, 3], integers from 0 to 255 or floats from 0 to 1. All panels share one scale, so that
    spread and concentrated attention can be told apart.
    """
    if len(table.columns) != height * width:
        raise ValueError(f"table: expected a column for each of {height} × {width} patches, got {len(table.columns)}")
    pixels = _as_bytes(picture)
    scale = PANEL_SIDE / max(pixels.shape[:2])
    panel = panel_width, panel_height = pixels.shape[1] * scale, pixels.shape[0] * scale
    patch = panel_width / width, panel_height / height
    uri = "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")
    largest = max(float(table.weights.max(initial=0)), 1e-6)
    top = MARGIN + (24 if table.title else 0)
    elements = [element(TextLabel(" · ".join(table.title), MARGIN, MARGIN + 7, 13))] if table.title else []
    elements += _panel(uri, (MARGIN, top), panel)
    elements.append(element(TextLabel("the picture", MARGIN + panel_width / 2, top + panel_height + 14, edge="middle")))
    pitch = 2 * panel_height + 28 + PANEL_GAP
    used: set[int] = set()
    for number, (label, weights) in enumerate(zip(table.rows, table.weights, strict=True), 1):
        line, place = divmod(number, PANELS_PER_ROW)
        corner = x, y = MARGIN + place * (panel_width + PANEL_GAP), top + line * pitch
        elements += _panel(uri, corner, panel)
        elements += _veils(weights.reshape(height, width) / largest, corner, patch)
        middle, label_y = x + panel_width / 2, y + panel_height + 14
        elements.append(element(TextLabel(label, middle, label_y, 14, False, table.row_direction, "middle")))
        below = x, y + panel_height + 28
        cells = list(_cells(table, number - 1, largest, below, patch, width))
        used |= {cell.level for cell in cells}
        elements += map(element, cells)
    across = min(PANELS_PER_ROW, len(table.rows) + 1)
    bottom = top + ((len(table.rows) + PANELS_PER_ROW) // PANELS_PER_ROW) * pitch
    shades = legend(largest, MARGIN, bottom + 4)
    used |= {item.level for item in shades if isinstance(item, Cell)}
    elements += map(element, shades)
    total_width = max(2 * MARGIN + across * (panel_width + PANEL_GAP) - PANEL_GAP, 220.0)
    description = f"what was looked at in a picture, by: {' '.join(table.rows)}"
    return document(total_width, bottom + 16 + MARGIN, elements, sorted(used), description)


def page(pictures: Sequence[str], title: str = "What was looked at in the picture") -> str:
    """Return one self-contained HTML page of SVGs, light or dark as the reader's screen is."""
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
    """Write one picture as .svg, or any number of them as .html."""
    target = Path(path)
    if target.suffix.lower() not in (".svg", ".html") or (target.suffix.lower() == ".svg" and len(shown) != 1):
        raise ValueError(f"path: expected a name that ends in .html, or for one picture in .svg, got {target.name!r}")
    drawn = [overlay(table, picture, height, width) for table, picture in shown]
    write_file(target, drawn[0] if target.suffix.lower() == ".svg" else page(drawn))


def png(pixels: Pixels) -> bytes:
    """Return pixels, uint8 [h, w] or [h, w, 3], as a PNG file."""
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 else 0
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], 1).tobytes()  # filter type 0: none

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")


def _as_bytes(picture: Pixels) -> Pixels:
    """Return a picture as uint8; floats are from 0 to 1."""
    picture = np.asarray(picture)
    if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] != 3) or 0 in picture.shape:
        raise ValueError(f"picture: expected [h, w] or [h, w, 3], got {list(picture.shape)}")
    if picture.dtype.kind == "f":
        picture = np.nan_to_num(picture) * 255
    return np.clip(np.round(picture), 0, 255).astype(np.uint8)


def _panel(uri: str, corner: Point, size: Point) -> list[str]:
    box = f'x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
    # Pictures of few pixels are enlarged without blurring.
    return [f'<image {box} preserveAspectRatio="none" style="image-rendering:pixelated" href="{uri}"/>']


def _veils(fractions: Pixels, corner: Point, cell: Point) -> Iterator[str]:
    """Yield veils over patches with little weight, then frames around those with much."""
    framed = []
    for (row, column), fraction in np.ndenumerate(fractions):
        x, y = corner[0] + column * cell[0], corner[1] + row * cell[1]
        box = f'x="{x:.1f}" y="{y:.1f}" width="{cell[0]:.1f}" height="{cell[1]:.1f}"'
        veil = VEIL_OPACITY * (1 - float(fraction))
        if veil >= 0.01:
            yield f'<rect class="ground" {box} fill-opacity="{veil:.2f}" shape-rendering="crispEdges"/>'
        if fraction >= FRAME_THRESHOLD:
            framed.append(f'<rect class="link" {box} stroke-width="{0.5 + 1.5 * fraction:.1f}"/>')
    yield from framed


def _cells(table: Table, row: int, largest: float, corner: Point, cell: Point, width: int) -> Iterator[Cell]:
    gap = 1.0 if min(cell) >= 10 else 0.0
    for number, weight in enumerate(table.weights[row].tolist()):
        x, y = corner[0] + number % width * cell[0], corner[1] + number // width * cell[1]
        tooltip = f"{table.rows[row]} ← {table.columns[number]}: {written(weight)}"
        yield Cell(x, y, cell[0] - gap, cell[1] - gap, level(weight / largest), "", tooltip)


def _letters(column: int) -> str:
    """Return the letters of a column: a … z, aa, ab …"""
    letters = ""
    while column >= 0:
        column, letter = divmod(column, 26)
        letters, column = chr(ord("a") + letter) + letters, column - 1
    return letters
