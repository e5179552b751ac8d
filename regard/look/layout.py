"""The layout of a picture of a table: cells, labels and curves, placed by estimated text widths.

A picture is a grid, or two lines of words with curves between them. Large tables shrink: smaller cells, smaller and
fewer labels, and only the strongest weights. The layout does not depend on what draws it, nor on its fonts.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from regard.look.colours import level
from regard.look.table import Table, strongest
from regard.text.boundaries import Direction, graphemes

LARGE_TABLE = 60  # rows or columns; beyond, only the strongest weights are drawn
MAX_LINKS_PER_ROW = 3  # of a large table
MAX_EXTENT = 1080.0  # the width and height up to which a picture grows before its contents shrink
MARGIN = 16.0
TEXT_SIZE, SMALL_SIZE = 14.0, 12.0
SLANT = 50  # degrees, of labels that do not fit horizontally
SINE, COSINE = math.sin(math.radians(SLANT)), math.cos(math.radians(SLANT))
MAX_LABEL_EMS = 24  # a longer label is cut; its tooltip has all of it

Edge = Literal["left", "middle", "right"]


class Cell(NamedTuple):
    """A box in the shade of its weight."""

    x: float
    y: float
    width: float
    height: float
    level: int  # its shade, as `regard.look.colours.level` returns it
    number: str = ""
    tooltip: str = ""


class TextLabel(NamedTuple):
    """A text whose middle line is at y, rotated by `turn` degrees around the edge that is at x."""

    text: str
    x: float
    y: float
    size: float = SMALL_SIZE
    faint: bool = True
    direction: Direction = "ltr"
    edge: Edge = "left"
    turn: int = 0


class Curve(NamedTuple):
    """A link between two words: from `top`, in the upper line, to `foot`, in the lower one."""

    top: tuple[float, float]
    foot: tuple[float, float]
    width: float
    opacity: float
    tooltip: str


Item = Cell | TextLabel | Curve


class Picture(NamedTuple):
    """A picture, ready to be drawn."""

    width: float
    height: float
    items: Sequence[Item]
    description: str  # the description for screen readers


def grid_picture(table: Table) -> Picture:
    """Return the layout of a grid with one row per query and one column per key; columns run in reading direction."""
    rows, columns = table.weights.shape
    mirrored = table.column_direction == "rtl"
    pitch = max(3.0, min(40.0, MAX_EXTENT / max(rows, columns, 1)))
    heads = _line(table.columns, table.column_direction, pitch)
    width, height = heads.pitch, min(pitch, 32.0)
    label_size, every = legible(height)
    label_space = MARGIN + 8 + max((text_width(label, label_size) for label in table.rows[::every]), default=0)
    overhang = heads.overhang + MARGIN
    left = overhang if mirrored else label_space
    top = _top(table) + heads.depth
    right, bottom = left + width * columns, top + height * rows
    places = [(columns - 1 - column if mirrored else column) for column in range(columns)]
    items: list[Item] = [Cell(left, top, right - left, bottom - top, 0)]
    items += _cells(table, [left + place * width for place in places], top, width, height)
    edge: Edge = "left" if mirrored else "right"
    x = right + 8 if mirrored else left - 8
    items += [
        TextLabel(table.rows[row], x, top + (row + 0.5) * height, label_size, False, table.row_direction, edge)
        for row in range(0, rows, every)
    ]
    items += heads.text_labels([left + (place + 0.5) * width for place in places], top, True)
    items += legend(table.top, left, bottom + 20)
    total_width = max(right + (label_space if mirrored else overhang), left + 180)
    return _framed(table, items, total_width, bottom + 32)


def _cells(table: Table, lefts: list[float], top: float, width: float, height: float) -> Iterator[Cell]:
    large = max(table.weights.shape) > LARGE_TABLE
    gap = 1.0 if min(width, height) >= 10 else 0.0
    numbers = width >= 32 and height >= 22
    for row, column, weight in strongest(table, LARGE_TABLE if large else max(1, len(table.columns))):
        shade = level(weight / table.top)
        if shade or not large:
            number = written(weight) if numbers and abs(weight) >= 0.005 else ""
            tooltip = _tooltip(table, row, column, weight)
            yield Cell(lefts[column], top + row * height, width - gap, height - gap, shade, number, tooltip)


def legend(top: float, x: float, y: float) -> list[Cell | TextLabel]:
    """Return the shades of the weights from 0 to `top`."""
    shades = [Cell(x + 14 + 10 * step, y - 5, 10, 10, level(step / 12)) for step in range(13)]
    return [TextLabel("0", x, y), *shades, TextLabel(f"{top:.2g}", x + 150, y)]


# Links


def links_picture(table: Table, floor: float = 0.05) -> Picture:
    """Return the layout of two lines of words, keys above and queries below, with a curve for each weight.

    The width and opacity of a curve grow with its weight. Weights below `floor`, a fraction of `table.top`, are
    left out.
    """
    if not 0 <= floor <= 1:
        raise ValueError(f"floor: expected a fraction from 0 to 1, got {floor}")
    upper, lower = _line(table.columns, table.column_direction), _line(table.rows, table.row_direction)
    span = max(upper.length, lower.length)
    overhang_left, overhang_right = (
        max(line.overhang if line.direction == direction else 0 for line in (upper, lower))
        for direction in ("rtl", "ltr")
    )
    left = MARGIN + overhang_left
    top = _top(table) + upper.depth
    foot = top + min(300.0, max(110.0, span * 0.25))
    above, below = ([left + place for place in line.spread(span)] for line in (upper, lower))
    large = max(table.weights.shape) > LARGE_TABLE
    chosen = strongest(table, MAX_LINKS_PER_ROW if large else max(1, len(table.columns)))
    widest = min(5.0, upper.pitch * 0.35, lower.pitch * 0.35)
    items: list[Item] = []
    for row, column, weight in sorted(chosen, key=lambda each: each[2]):  # the strongest lie on top
        fraction = min(1.0, weight / table.top)
        if fraction > 0 and fraction >= floor:
            ends = (above[column], top), (below[row], foot)
            tooltip = _tooltip(table, row, column, weight)
            items.append(Curve(*ends, 0.8 + widest * fraction, 0.1 + 0.9 * fraction, tooltip))
    items += [*upper.text_labels(above, top, True), *lower.text_labels(below, foot, False)]
    return _framed(table, items, left + span + overhang_right + MARGIN, foot + lower.depth + 8)


class _Line(NamedTuple):
    """A line of labels: horizontal where they fit, else slanted and closer together."""

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
        """The height of the line, with its distance from the cells or curves."""
        longest = max((text_width(label, self.size) for label in self.labels[:: self.every]), default=0)
        return 12 + longest * SINE + self.size / 2 if self.slanted else 26

    @property
    def overhang(self) -> float:
        """How far slanted labels reach beyond the end of the line."""
        if not self.slanted:
            return 0
        shown = range(0, len(self.labels), self.every)
        rest = ((len(self.labels) - each - 0.5) * self.pitch for each in shown)  # from the label to the end of the line
        lengths = (text_width(self.labels[each], self.size) for each in shown)
        return max(0.0, max(length * COSINE - space for length, space in zip(lengths, rest, strict=True)))

    def text_labels(self, places: Sequence[float], y: float, rising: bool) -> list[TextLabel]:
        """Return the labels at their places. Slanted ones begin there and rise, or fall, in reading direction."""
        rightwards = self.direction == "ltr"
        text_labels = []
        for label, place in zip(self.labels[:: self.every], places[:: self.every], strict=True):
            slanted = self.slanted and len(graphemes(label)) > 1  # a single character needs no rotation
            offset = (6 if slanted else 4 + self.size * 0.65) * (-1 if rising else 1)
            edge: Edge = "middle" if not slanted else "left" if rightwards else "right"
            turn = (-SLANT if rightwards == rising else SLANT) if slanted else 0
            text_labels.append(TextLabel(label, place, y + offset, self.size, False, self.direction, edge, turn))
        return text_labels

    def spread(self, span: float) -> list[float]:
        """Return the middle of each label, so that the line fills the span unless the gaps would get too wide."""
        spaces = max(0, len(self.widths) - 1)
        gap = min(self.gap + (span - self.length) / max(1, spaces), 90.0)
        reached = (span - sum(self.widths) - gap * spaces) / 2
        places = []
        for width in self.widths:
            places.append(reached + width / 2)
            reached += width + gap
        return [span - place for place in places] if self.direction == "rtl" else places


def _line(labels: Sequence[str], direction: Direction, pitch: float | None = None) -> _Line:
    """Return a line of labels; with a pitch, all are equally far apart, by that or up to twice as much."""
    widths = [text_width(label, TEXT_SIZE) for label in labels]
    if pitch is None:
        horizontal = _Line(labels, direction, widths, 20, TEXT_SIZE, 1, False)
        fits = horizontal.length <= MAX_EXTENT
    else:
        widest = max(pitch, max(widths, default=0) + 12)
        horizontal = _Line(labels, direction, [widest] * len(labels), 0, TEXT_SIZE, 1, False)
        fits = widest <= 2 * pitch and horizontal.length <= MAX_EXTENT
    if fits:
        return horizontal
    pitch = pitch or max(3.0, min(28.0, MAX_EXTENT / len(labels)))
    return _Line(labels, direction, [pitch] * len(labels), 0, *legible(pitch * SINE), True)


# Text


def text_width(text: str, size: float, max_ems: float = MAX_LABEL_EMS) -> float:
    """Return the estimated width of a text, cut at `max_ems`."""
    return size * sum(map(_ems, graphemes(short(text, max_ems))))


def short(text: str, max_ems: float = MAX_LABEL_EMS) -> str:
    """Return the text, cut with an ellipsis if it is wider than `max_ems`."""
    width = 0.0
    start: list[str] = []
    for character in graphemes(text):
        width += _ems(character)
        if width > max_ems:
            return "".join(start) + "…"
        start.append(character)
    return text


def _ems(grapheme: str) -> float:
    """Return the approximate width of a character; spacing marks and consonants joined to it add to it."""
    first = grapheme[0]
    if unicodedata.east_asian_width(first) in "WF":
        return 1.0
    kinds = {"Lu": 0.7, "So": 0.9, "Lo": 0.75 if unicodedata.bidirectional(first) == "L" else 0.6}
    joined = {"Lo": 0.4, "Mc": 0.3}
    ems = kinds.get(unicodedata.category(first), 0.6)
    ems += sum(joined.get(unicodedata.category(other), 0.0) for other in grapheme[1:])
    return ems * 1.4 if "\u0b80" <= first <= "\u0dff" else ems  # Tamil to Sinhala: round and wide


def legible(pitch: float) -> tuple[float, int]:
    """Return (font size, n) for labels that are `pitch` apart, such that every n-th label is shown and readable."""
    size = min(TEXT_SIZE, pitch * 0.8)
    return (size, 1) if size >= 8 else (9.0, math.ceil(12 / pitch))


def written(weight: float) -> str:
    """Return a weight as text, with two decimals and a minus sign instead of a hyphen."""
    return f"{weight:.2f}".replace("-", "−")


def _tooltip(table: Table, row: int, column: int, weight: float) -> str:
    # Unicode isolates keep each word together, whatever its direction.
    return f"\u2068{table.rows[row]}\u2069 ← \u2068{table.columns[column]}\u2069: {written(weight)}"


def _top(table: Table) -> float:
    return MARGIN + (24 if table.title else 0)


def _framed(table: Table, items: list[Item], width: float, bottom: float) -> Picture:
    """Return the picture of the items with the title above and the footnotes below them."""
    title = " · ".join(table.title)
    framing = [TextLabel(title, MARGIN, MARGIN + 7, 13)] if title else []
    framing += [TextLabel(note, MARGIN, bottom + 18 * each + 9) for each, note in enumerate(table.footnotes)]
    for label in framing:
        width = max(width, 2 * MARGIN + text_width(label.text, label.size, math.inf))
    rows, columns = (" ".join(labels[:LARGE_TABLE]) for labels in (table.rows, table.columns))
    description = f"{title or 'attention'}, of: {rows}; to: {columns}"
    return Picture(width, bottom + 18 * len(table.footnotes) + MARGIN / 2, [*items, *framing], description)
