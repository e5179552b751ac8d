"""Pictures as SVG. Text stays text, which the viewer shapes with its fonts; colours follow its light or dark theme."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from regard.look.colours import DARK_PAPER, LEVELS, LIGHT_PAPER, Paper, colour, ink
from regard.look.layout import Cell, Curve, Item, Picture, TextLabel, short
from regard.look.table import visible

FONTS = (
    *("Noto Sans", "Noto Sans Devanagari", "Noto Naskh Arabic", "Noto Sans Arabic", "Noto Sans Hebrew"),
    *("Noto Sans CJK SC", "Noto Sans SC", "Noto Sans Symbols 2", "Noto Sans Symbols2"),
    *("Segoe UI", "Nirmala UI", "Mangal", "Kohinoor Devanagari", "Geeza Pro", "PingFang SC", "Microsoft YaHei"),
    *("Segoe UI Symbol", "DejaVu Sans"),
)
"""in order of preference; a character that none of them has is shown in any font of the viewer"""


def render(picture: Picture) -> str:
    """Return a picture as an SVG document."""
    used = {item.level for item in picture.items if isinstance(item, Cell)}
    return document(picture.width, picture.height, map(element, picture.items), sorted(used), picture.description)


def document(width: float, height: float, elements: Iterable[str], used: list[int], description: str) -> str:
    """Return an SVG document of rendered elements, with styles for the shades that they use."""
    size = f'width="{_n(width)}" height="{_n(height)}"'
    fonts = ",".join(f'"{name}"' for name in FONTS)
    style = (
        f".regard text{{font-family:{fonts},sans-serif}}.regard .link{{fill:none}}{_colours(used, LIGHT_PAPER, False)}"
        f"@media(prefers-color-scheme:dark){{{_colours(used, DARK_PAPER, True)}}}"
    )
    attributes = f'viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label="{_escaped(description)}"'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" class="regard" {size} {attributes}>'
    return "\n".join([begin, f'<style>{style}</style>\n<rect class="ground" {size}/>', *elements, "</svg>\n"])


def _colours(used: list[int], paper: Paper, dark: bool) -> str:
    rules = [f".{kind}{{fill:{getattr(paper, kind)}}}" for kind in ("ground", "text", "faint")]
    rules.append(f".link{{stroke:{paper.link}}}")
    for number in used:
        shade = colour(number / LEVELS, dark)
        rules += [f".s{number}{{fill:{shade}}}", f".s{number} text{{fill:{ink(shade)}}}"]
    return "".join(f".regard {rule}" for rule in rules)


def element(item: Item) -> str:
    """Return an item of a picture as an SVG element."""
    if isinstance(item, TextLabel):
        return _text(item)
    title = f"<title>{_escaped(item.tooltip)}</title>" if item.tooltip else ""
    if isinstance(item, Curve):
        (x, y), (end, foot), half = item.top, item.foot, (item.top[1] + item.foot[1]) / 2
        path = f"M{_n(x)} {_n(y)}C{_n(x)} {_n(half)} {_n(end)} {_n(half)} {_n(end)} {_n(foot)}"
        stroke = f'stroke-width="{_n(item.width)}" stroke-opacity="{item.opacity:.2f}"'
        return f'<path class="link" d="{path}" {stroke}>{title}</path>'
    box = f'<rect x="{_n(item.x)}" y="{_n(item.y)}" width="{_n(item.width)}" height="{_n(item.height)}"/>'
    if item.number:
        x, y = item.x + item.width / 2, item.y + item.height / 2 + 4
        box += f'<text x="{_n(x)}" y="{_n(y)}" font-size="11.5" text-anchor="middle">{item.number}</text>'
    return f'<g class="s{item.level}">{title}{box}</g>'


def _text(label: TextLabel) -> str:
    # text-anchor counts in the direction of the text: the start of a text from right to left is at its right.
    starts = (label.edge == "left") == (label.direction == "ltr")
    anchor = "middle" if label.edge == "middle" else "start" if starts else "end"
    lower = 0.35 * label.size  # from the middle line down to the baseline
    place = f'x="{_n(label.x)}" y="{_n(label.y + lower)}"'
    if label.turn:
        place = f'y="{_n(lower)}" transform="translate({_n(label.x)} {_n(label.y)}) rotate({label.turn})"'
    direction = ' direction="rtl"' if label.direction == "rtl" else ""
    shown = label.text if label.faint else short(label.text)
    tooltip = f"<title>{_escaped(label.text)}</title>" if shown != label.text else ""
    style = f'class="{"faint" if label.faint else "text"}" font-size="{_n(label.size)}" text-anchor="{anchor}"'
    return f"<text {style} {place}{direction}>{tooltip}{_escaped(shown)}</text>"


def _escaped(text: str) -> str:
    """Return the text as XML allows it, also in attributes."""
    return escape(visible(text), {'"': "&quot;"})


def _n(value: float) -> str:
    """Return a number with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")
