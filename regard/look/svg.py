"""A table as SVG, written here. Text stays text, which the viewer shapes with whichever of many fonts it has; colours
follow the viewer's light or dark."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from regard.look.colours import DARK_PAPER, LEVELS, LIGHT_PAPER, Paper, colour, ink
from regard.look.layout import Cell, Curve, Picture, Words, grid_picture, links_picture, short
from regard.look.table import Table, visible

FONTS = (
    *("Noto Sans", "Noto Sans Devanagari", "Noto Naskh Arabic", "Noto Sans Arabic", "Noto Sans Hebrew"),
    *("Noto Sans CJK SC", "Noto Sans SC", "Noto Sans Symbols 2", "Noto Sans Symbols2"),
    *("Segoe UI", "Nirmala UI", "Mangal", "Kohinoor Devanagari", "Geeza Pro", "PingFang SC", "Microsoft YaHei"),
    *("Segoe UI Symbol", "DejaVu Sans"),
)
"""the first of these that has a character shows it; else any the viewer has"""


def grid(table: Table) -> str:
    """SVG: a row for each that looks, a column for each that is looked at. Columns run as their text does."""
    return drawn(grid_picture(table))


def links(table: Table, floor: float = 0.05) -> str:
    """SVG: what is looked at above, what looks below, each running as its text does; a curve is as wide and strong as
    its weight is large. Those below the floor, a share of the largest that could be, are left out."""
    return drawn(links_picture(table, floor))


# The grid


def drawn(picture: Picture) -> str:
    used = {item.level for item in picture.items if isinstance(item, Cell)}
    return document(picture.width, picture.height, map(element, picture.items), sorted(used), picture.spoken)


def document(wide: float, high: float, elements: Iterable[str], used: list[int], spoken: str) -> str:
    """A whole SVG of elements that are written already, with the shades that are used in them."""
    width, height = _n(wide), _n(high)
    fonts = ",".join(f'"{name}"' for name in FONTS)
    style = (
        f".regard text{{font-family:{fonts},sans-serif}}.regard .link{{fill:none}}{_colours(used, LIGHT_PAPER, False)}"
        f"@media(prefers-color-scheme:dark){{{_colours(used, DARK_PAPER, True)}}}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="regard" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="{_clean(spoken)}">',
            f'<style>{style}</style>\n<rect class="ground" width="{width}" height="{height}"/>',
            *elements,
            "</svg>\n",
        ]
    )


def _colours(used: list[int], paper: Paper, dark: bool) -> str:
    rules = [f".{kind}{{fill:{getattr(paper, kind)}}}" for kind in ("ground", "text", "faint")]
    rules.append(f".link{{stroke:{paper.link}}}")
    for number in used:
        shade = colour(number / LEVELS, dark)
        rules += [f".s{number}{{fill:{shade}}}", f".s{number} text{{fill:{ink(shade)}}}"]
    return "".join(f".regard {rule}" for rule in rules)


def element(item: Cell | Words | Curve) -> str:
    if isinstance(item, Words):
        return _text(item)
    title = f"<title>{_clean(item.tooltip)}</title>" if item.tooltip else ""
    if isinstance(item, Curve):
        (x, y), (end, foot), half = item.top, item.foot, (item.top[1] + item.foot[1]) / 2
        way = f"M{_n(x)} {_n(y)}C{_n(x)} {_n(half)} {_n(end)} {_n(half)} {_n(end)} {_n(foot)}"
        look = f'stroke-width="{_n(item.width)}" stroke-opacity="{item.opacity:.2f}"'
        return f'<path class="link" d="{way}" {look}>{title}</path>'
    box = f'<rect x="{_n(item.x)}" y="{_n(item.y)}" width="{_n(item.width)}" height="{_n(item.height)}"/>'
    if item.number:
        x, y = item.x + item.width / 2, item.y + item.height / 2 + 4
        box += f'<text x="{_n(x)}" y="{_n(y)}" font-size="11.5" text-anchor="middle">{item.number}</text>'
    return f'<g class="s{item.level}">{title}{box}</g>'


def _text(words: Words) -> str:
    # Where a text starts and ends is meant as it runs.
    starts = (words.edge == "left") == (words.direction == "ltr")
    anchor = "middle" if words.edge == "middle" else "start" if starts else "end"
    lower = 0.35 * words.size  # from the middle line down to the base line
    place = f'x="{_n(words.x)}" y="{_n(words.y + lower)}"'
    if words.turn:
        place = f'y="{_n(lower)}" transform="translate({_n(words.x)} {_n(words.y)}) rotate({words.turn})"'
    run = ' direction="rtl"' if words.direction == "rtl" else ""
    shown = words.text if words.faint else short(words.text)
    whole = f"<title>{_clean(words.text)}</title>" if shown != words.text else ""
    look = f'class="{"faint" if words.faint else "text"}" font-size="{_n(words.size)}" text-anchor="{anchor}"'
    return f"<text {look} {place}{run}>{whole}{_clean(shown)}</text>"


def _clean(text: str) -> str:
    """As XML can hold it."""
    return escape(visible(text), {'"': "&quot;"})


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
