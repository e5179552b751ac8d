"""A table as PNG or PDF, through matplotlib: what the SVG shows, in the same places and colours.

Such a picture holds its own letters, so they must be right. Text is handed over as it is written, for matplotlib to
shape and to turn right to left; and every character comes from a font that has it, or no picture is made.
"""

from __future__ import annotations

import io
import unicodedata
import warnings
from collections.abc import Callable, Iterable
from math import cos, radians, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.look.colours import LEVELS, LIGHT_PAPER, colour, ink
from regard.look.layout import Cell, Curve, Picture, Words, grid_picture, links_picture, short
from regard.look.svg import FONTS
from regard.look.table import END, Table
from regard.runtime.files import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".png", ".pdf")
VIEWS: dict[str, Callable[[Table], Picture]] = {"grid": grid_picture, "links": links_picture}
VERSION = (3, 11)
"""of matplotlib: the first that shapes text"""
STOP = "■"
"""for the end token, where no font has its sign"""
CJK = ("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "FULLWIDTH", "HALFWIDTH")
"""how the names of characters begin that fonts-noto-cjk is for"""
PIXELS = 2.0
"""of a PNG, for each of the SVG's"""


def save(table: Table, path: str | Path, view: str = "grid") -> None:
    """As .png or .pdf. A ValueError says which font or package is missing."""
    if view not in VIEWS:
        raise ValueError(f"view: expected {' or '.join(VIEWS)}, got {view!r}")
    save_picture(VIEWS[view](table), path)


def save_picture(picture: Picture, path: str | Path) -> None:
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"path: expected a name that ends in {' or '.join(ENDINGS)}, got {Path(path).name!r}")
    content = io.BytesIO()
    with warnings.catch_warnings():
        # Fonts that have all characters may still not be able to draw them together, in an order no language has.
        warnings.filterwarnings("error", message="Glyph .* missing", category=UserWarning)
        try:
            figure(picture).savefig(content, format=ending[1:], dpi=96 * PIXELS)
        except UserWarning as warning:
            raise ValueError(f"cannot be drawn: {warning}") from None
    write_file(path, content.getvalue())


def figure(picture: Picture) -> Figure:
    """Drawn, on light paper; a pixel of the SVG is 1/96 inch, as there."""
    _require()
    from matplotlib.figure import Figure

    texts = [_shown(item) for item in picture.items if isinstance(item, Words)]
    families = Families()
    families.require("".join(texts))
    drawn = Figure((picture.width / 96, picture.height / 96), facecolor=LIGHT_PAPER.ground)
    axes = drawn.add_axes((0, 0, 1, 1), xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.set_axis_off()
    _cells(axes, [item for item in picture.items if isinstance(item, Cell)], families)
    for item in picture.items:
        if isinstance(item, Words):
            _words(axes, item, families)
        elif isinstance(item, Curve):
            _curve(axes, item)
    return drawn


def _require() -> None:
    why = "matplotlib 3.11 or newer, for older ones do not shape Devanagari and Arabic; pip install 'regard[plot]'"
    try:
        import matplotlib
    except ImportError:
        raise ValueError(f"pictures as .png and .pdf need {why}") from None
    if matplotlib.__version_info__[:2] < VERSION:
        raise ValueError(f"pictures as .png and .pdf need {why}; got matplotlib {matplotlib.__version__}")


# What is drawn


def _cells(axes: Axes, cells: list[Cell], families: Families) -> None:
    from matplotlib.collections import PolyCollection

    shades = [colour(cell.level / LEVELS) for cell in cells]
    corners = [[(x, y), (x + width, y), (x + width, y + height), (x, y + height)] for x, y, width, height, *_ in cells]
    axes.add_collection(PolyCollection(corners, facecolors=shades, linewidths=0, antialiaseds=False), autolim=False)
    for cell, shade in zip(cells, shades, strict=True):
        if cell.number:
            x, y = cell.x + cell.width / 2, cell.y + cell.height / 2 + 4
            _text(axes, (x, y), cell.number, 11.5, ink(shade), families, ha="center")


def _words(axes: Axes, words: Words, families: Families) -> None:
    text = families.known(_shown(words))
    edge = {"left": "left", "middle": "center", "right": "right"}[words.edge]
    shade = LIGHT_PAPER.faint if words.faint else LIGHT_PAPER.text
    turned = {"rotation": -words.turn, "rotation_mode": "anchor"}
    _text(axes, _base(words), text, words.size, shade, families, ha=edge, **turned)


def _text(
    axes: Axes, place: tuple[float, float], text: str, size: float, shade: str, families: Families, **how: Any
) -> None:
    """As it is: a dollar sign is a dollar sign."""
    names = families.covering(text)
    size *= 0.75  # in points
    axes.text(*place, text, fontsize=size, color=shade, family=names, parse_math=False, usetex=False, **how)


def _base(words: Words) -> tuple[float, float]:
    """Where the base line begins: below the middle line, as the words stand."""
    lower, turn = 0.35 * words.size, radians(words.turn)
    return words.x - lower * sin(turn), words.y + lower * cos(turn)


def _curve(axes: Axes, curve: Curve) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Way

    (x, y), (end, foot), half = curve.top, curve.foot, (curve.top[1] + curve.foot[1]) / 2
    way = Way([(x, y), (x, half), (end, half), (end, foot)], [Way.MOVETO, Way.CURVE4, Way.CURVE4, Way.CURVE4])
    axes.add_patch(
        PathPatch(way, fill=False, edgecolor=LIGHT_PAPER.link, linewidth=curve.width * 0.75, alpha=curve.opacity)
    )


def _shown(words: Words) -> str:
    """What has no look of its own, such as control characters, becomes a blank."""
    text = words.text if words.faint else short(words.text)
    unseen = ("Cc", "Cs", "Zl", "Zp")
    return "".join(" " if unicodedata.category(each) in unseen else each for each in text)


# Fonts


class Families:
    """The families of fonts that are installed, those we would rather use first, and what they cover."""

    def __init__(self) -> None:
        self._names = installed()
        self._covered: dict[str, set[int]] = {}

    def require(self, text: str) -> None:
        """One error for all that no font has."""
        missing = self._missing(text)
        if missing:
            refresh()
            self._names = installed()
            missing = self._missing(text)
        if missing:
            scripts = ", ".join(sorted({script(character) for character in missing}))
            packages = " ".join(sorted({package(character) for character in missing}))
            raise ValueError(
                f"no installed font has {' '.join(sorted(missing)[:8])} ({scripts}); on Debian: apt install {packages}"
            )

    def known(self, text: str) -> str:
        return text if END not in text or self._has(END) else text.replace(END, STOP)

    def covering(self, text: str) -> list[str]:
        """The first family that has all of the text, else several that have it together."""
        needed = set(needing(text))
        alone = next((name for name in self._names if needed <= self._characters(name)), None)
        if alone is not None:
            return [alone]
        chosen: list[str] = []
        for name in self._names:
            if needed & self._characters(name):
                chosen.append(name)
                needed -= self._characters(name)
            if not needed:
                break
        return chosen

    def _missing(self, text: str) -> set[str]:
        return {chr(code) for code in needing(text) if chr(code) != END and not self._has(chr(code))}

    def _has(self, character: str) -> bool:
        return any(ord(character) in self._characters(name) for name in self._names)

    def _characters(self, name: str) -> set[int]:
        if name not in self._covered:
            self._covered[name] = characters(name)
        return self._covered[name]


def installed() -> list[str]:
    """The families with upright letters of usual weight, but for those whose letters are not what their codes say."""
    from matplotlib import get_data_path
    from matplotlib.font_manager import fontManager

    own = str(Path(get_data_path()))
    names = {
        entry.name
        for entry in fontManager.ttflist
        if entry.weight in (400, "normal")
        and entry.style == "normal"
        and (entry.name == "DejaVu Sans" or not entry.fname.startswith(own))
        and "lastresort" not in entry.name.replace(" ", "").lower()
    }
    order = {name: number for number, name in enumerate(FONTS)}
    return sorted(names, key=lambda name: (order.get(name, len(order)), "Sans" not in name, "Mono" in name, name))


def refresh() -> None:
    """Fonts installed since matplotlib made its list."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {entry.fname for entry in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known:
            try:
                fontManager.addfont(path)
            except (RuntimeError, OSError, NotImplementedError, UnicodeError):  # not a font that can be drawn with
                continue


def characters(name: str) -> set[int]:
    """All that a family has, by its own map."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return set(get_font(findfont(FontProperties(family=[name]), fallback_to_default=False)).get_charmap())


def needing(text: str) -> Iterable[int]:
    """The characters that need a letter in a font: not blanks, and not those that only join, part or turn others."""
    return (ord(character) for character in text if not _unseen(character))


def _unseen(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f"


def script(character: str) -> str:
    """From the character's name, as "Devanagari"; symbols have none."""
    name = unicodedata.name(character, "")
    if unicodedata.category(character)[0] == "S" or not name:
        return "symbols"
    return "CJK" if name.startswith(("CJK", "IDEOGRAPHIC")) else name.split()[0].capitalize()


def package(character: str) -> str:
    """Of Debian, that has a font for it."""
    if unicodedata.name(character, "").startswith(CJK):
        return "fonts-noto-cjk"
    emoji = unicodedata.category(character) == "So" and ord(character) >= 0x1F000
    return "fonts-symbola" if emoji else "fonts-noto-core"
