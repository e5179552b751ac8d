"""What stands where in a picture of a table: boxes, words and curves, from widths that are estimated.

A grid, or two lines of words with curves between them. Large tables shrink: smaller cells, smaller and fewer labels,
and only what is strongest. Who draws it, and with which fonts, is not known here.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from regard.look.colours import level
from regard.look.table import Table, strongest
from regard.text.boundaries import Direction, graphemes

MANY = 60
"""rows or columns; beyond, only the strongest weights are drawn"""
FEW = 3
"""links of a row, when there are many"""
SPACE = 1080.0
"""how wide and high a picture may grow before it shrinks what is in it"""
MARGIN = 16.0
TEXT, SMALL = 14.0, 12.0
SLANT = 50
"""degrees, of labels that would not fit level"""
SINE, COSINE = math.sin(math.radians(SLANT)), math.cos(math.radians(SLANT))
LONGEST = 24
"""ems of a label; a longer one is cut, and whole in its tooltip"""

Edge = Literal["left", "middle", "right"]


class Cell(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    level: int
    """its shade"""
    number: str = ""
    tooltip: str = ""


class Words(NamedTuple):
    """With their middle line at y; turned, about the edge that is at x."""

    text: str
    x: float
    y: float
    size: float = SMALL
    faint: bool = True
    direction: Direction = "ltr"
    edge: Edge = "left"
    turn: int = 0


class Curve(NamedTuple):
    top: tuple[float, float]
    foot: tuple[float, float]
    width: float
    opacity: float
    tooltip: str


class Picture(NamedTuple):
    width: float
    height: float
    items: Sequence[Cell | Words | Curve]
    spoken: str
    """for those who cannot see it"""


def grid_picture(table: Table) -> Picture:
    rows, columns = table.weights.shape
    mirrored = table.column_direction == "rtl"
    room = max(3.0, min(40.0, SPACE / max(rows, columns, 1)))
    heads = _line(table.columns, table.column_direction, room)
    width, height = heads.pitch, min(room, 32.0)
    names, every = legible(height)
    beside = MARGIN + 8 + max((text_width(label, names) for label in table.rows[::every]), default=0)
    spill = heads.spill + MARGIN
    left = spill if mirrored else beside
    top = _top(table) + heads.depth
    right, bottom = left + width * columns, top + height * rows
    places = [(columns - 1 - column if mirrored else column) for column in range(columns)]
    items: list[Cell | Words | Curve] = [Cell(left, top, right - left, bottom - top, 0)]
    items += _cells(table, [left + place * width for place in places], top, width, height)
    items += [
        Words(
            table.rows[row],
            right + 8 if mirrored else left - 8,
            top + (row + 0.5) * height,
            names,
            False,
            table.row_direction,
            "left" if mirrored else "right",
        )
        for row in range(0, rows, every)
    ]
    items += heads.words([left + (place + 0.5) * width for place in places], top, True)
    items += _legend(table, left, bottom + 20)
    whole = max(right + (beside if mirrored else spill), left + 180)
    return _framed(table, items, whole, bottom + 32)


def _cells(table: Table, lefts: list[float], top: float, width: float, height: float) -> Iterator[Cell]:
    many = max(table.weights.shape) > MANY
    gap = 1.0 if min(width, height) >= 10 else 0.0
    numbers = width >= 32 and height >= 22
    for row, column, weight in strongest(table, MANY if many else max(1, len(table.columns))):
        shade = level(weight / table.top)
        if shade or not many:
            number = written(weight) if numbers and abs(weight) >= 0.005 else ""
            tooltip = _tooltip(table, row, column, weight)
            yield Cell(lefts[column], top + row * height, width - gap, height - gap, shade, number, tooltip)


def _legend(table: Table, x: float, y: float) -> list[Cell | Words]:
    steps, side = 12, 10.0
    start = x + 14
    shades = [Cell(start + step * side, y - 5, side, 10, level(step / steps)) for step in range(steps + 1)]
    return [Words("0", x, y), *shades, Words(f"{table.top:.2g}", start + (steps + 1) * side + 6, y)]


# Links


def links_picture(table: Table, floor: float = 0.05) -> Picture:
    if not 0 <= floor <= 1:
        raise ValueError(f"floor: expected a share from 0 to 1, got {floor}")
    upper, lower = _line(table.columns, table.column_direction), _line(table.rows, table.row_direction)
    span = max(upper.length, lower.length)
    spills = {way: max((line.spill for line in (upper, lower) if line.direction == way), default=0) for way in WAYS}
    left = MARGIN + spills["rtl"]
    top = _top(table) + upper.depth
    foot = top + min(300.0, max(110.0, span * 0.25))
    above, below = ([left + place for place in line.spread(span)] for line in (upper, lower))
    chosen = strongest(table, FEW if max(table.weights.shape) > MANY else max(1, len(table.columns)))
    widest = min(5.0, upper.pitch * 0.35, lower.pitch * 0.35)
    items: list[Cell | Words | Curve] = []
    for row, column, weight in sorted(chosen, key=lambda each: each[2]):  # the strongest lie on top
        share = min(1.0, weight / table.top)
        if share > 0 and share >= floor:
            ends = (above[column], top), (below[row], foot)
            tooltip = _tooltip(table, row, column, weight)
            items.append(Curve(*ends, 0.8 + widest * share, 0.1 + 0.9 * share, tooltip))
    items += [*upper.words(above, top, True), *lower.words(below, foot, False)]
    return _framed(table, items, left + span + spills["ltr"] + MARGIN, foot + lower.depth + 8)


WAYS: tuple[Direction, Direction] = ("ltr", "rtl")


class _Line(NamedTuple):
    """A line of labels: level where they fit, else slanted and closer."""

    labels: Sequence[str]
    direction: Direction
    widths: Sequence[float]
    gap: float
    size: float
    every: int
    slanted: bool

    @property
    def pitch(self) -> float:
        return max(self.widths, default=0) + self.gap

    @property
    def length(self) -> float:
        return sum(self.widths) + self.gap * max(0, len(self.widths) - 1)

    @property
    def depth(self) -> float:
        longest = max((text_width(label, self.size) for label in self.labels[:: self.every]), default=0)
        return 12 + longest * SINE + self.size / 2 if self.slanted else 26

    @property
    def spill(self) -> float:
        """beyond the end of the line"""
        if not self.slanted:
            return 0
        shown = range(0, len(self.labels), self.every)
        rest = ((len(self.labels) - each - 0.5) * self.pitch for each in shown)  # from its place to the end
        lengths = (text_width(self.labels[each], self.size) for each in shown)
        return max(0.0, max(length * COSINE - room for length, room in zip(lengths, rest, strict=True)))

    def words(self, places: Sequence[float], y: float, rising: bool) -> list[Words]:
        """Slanted ones begin at their places and rise, or fall, the way they run."""
        onwards = self.direction == "ltr"
        found = []
        for label, place in zip(self.labels[:: self.every], places[:: self.every], strict=True):
            slanted = self.slanted and len(graphemes(label)) > 1  # a character by itself needs no turning
            away = (6 if slanted else 4 + self.size * 0.65) * (-1 if rising else 1)
            edge: Edge = "middle" if not slanted else "left" if onwards else "right"
            turn = (-SLANT if onwards == rising else SLANT) if slanted else 0
            found.append(Words(label, place, y + away, self.size, False, self.direction, edge, turn))
        return found

    def spread(self, span: float) -> list[float]:
        """The middle of each label, so that the line fills the span as far as gaps do not get too wide."""
        spaces = max(0, len(self.widths) - 1)
        gap = min(self.gap + (span - self.length) / max(1, spaces), 90.0)
        reached = (span - sum(self.widths) - gap * spaces) / 2
        places = []
        for width in self.widths:
            places.append(reached + width / 2)
            reached += width + gap
        return [span - place for place in places] if self.direction == "rtl" else places


def _line(labels: Sequence[str], direction: Direction, pitch: float | None = None) -> _Line:
    """With a pitch: all as far apart, by that or up to twice as much."""
    widths = [text_width(label, TEXT) for label in labels]
    if pitch is None:
        level = _Line(labels, direction, widths, 20, TEXT, 1, False)
        fits = level.length <= SPACE
    else:
        widest = max(pitch, max(widths, default=0) + 12)
        level = _Line(labels, direction, [widest] * len(labels), 0, TEXT, 1, False)
        fits = widest <= 2 * pitch and level.length <= SPACE
    if fits:
        return level
    pitch = pitch or max(3.0, min(28.0, SPACE / len(labels)))
    return _Line(labels, direction, [pitch] * len(labels), 0, *legible(pitch * SINE), True)


# Text


def text_width(text: str, size: float, longest: float = LONGEST) -> float:
    return size * sum(map(_ems, graphemes(short(text, longest))))


def short(text: str, longest: float = LONGEST) -> str:
    """As much as a label has room for."""
    used = 0.0
    kept: list[str] = []
    for character in graphemes(text):
        used += _ems(character)
        if used > longest:
            return "".join(kept) + "…"
        kept.append(character)
    return text


def _ems(grapheme: str) -> float:
    """How wide a character is, roughly: signs that stand beside it and consonants joined to it add to it."""
    first = grapheme[0]
    if unicodedata.east_asian_width(first) in "WF":
        return 1.0
    kinds = {"Lu": 0.7, "So": 0.9, "Lo": 0.75 if unicodedata.bidirectional(first) == "L" else 0.6}
    beside = {"Lo": 0.4, "Mc": 0.3}
    ems = kinds.get(unicodedata.category(first), 0.6)
    ems += sum(beside.get(unicodedata.category(other), 0.0) for other in grapheme[1:])
    return ems * 1.4 if "\u0b80" <= first <= "\u0dff" else ems  # Tamil to Sinhala: round and wide


def legible(pitch: float) -> tuple[float, int]:
    """(size of letters, every how many a label is shown) for labels so far apart."""
    size = min(TEXT, pitch * 0.8)
    return (size, 1) if size >= 8 else (9.0, math.ceil(12 / pitch))


def written(weight: float) -> str:
    return f"{weight:.2f}".replace("-", "−")


def _tooltip(table: Table, row: int, column: int, weight: float) -> str:
    # Marks that are not seen keep each word together, whichever way it runs.
    return f"\u2068{table.rows[row]}\u2069 ← \u2068{table.columns[column]}\u2069: {written(weight)}"


def _top(table: Table) -> float:
    return MARGIN + (24 if table.title else 0)


def _framed(table: Table, items: list[Cell | Words | Curve], width: float, bottom: float) -> Picture:
    """With title and footnotes."""
    title = " · ".join(table.title)
    framing = [Words(title, MARGIN, MARGIN + 7, 13)] if title else []
    framing += [Words(note, MARGIN, bottom + 18 * each + 9) for each, note in enumerate(table.footnotes)]
    for words in framing:
        width = max(width, 2 * MARGIN + text_width(words.text, words.size, math.inf))
    rows, columns = (" ".join(labels[:MANY]) for labels in (table.rows, table.columns))
    spoken = f"{title or 'attention'}, of: {rows}; to: {columns}"
    return Picture(width, bottom + 18 * len(table.footnotes) + MARGIN / 2, [*items, *framing], spoken)


# SVG
