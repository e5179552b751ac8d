"""Pictures as PNG or PDF, drawn by matplotlib: the same layout and colours as the SVG.

Unlike an SVG, such a picture contains its glyphs, so they must be right. Matplotlib shapes the text and reverses what
runs from right to left; every character must be in an installed font, or no picture is made.
"""

from __future__ import annotations

import io
import unicodedata
import warnings
from collections.abc import Iterable
from math import cos, radians, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.look.colours import LEVELS, LIGHT_PAPER, colour, ink
from regard.look.layout import Cell, Curve, Picture, TextLabel, short
from regard.look.svg import FONTS
from regard.look.table import END
from regard.runtime.files import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".png", ".pdf")
MIN_MATPLOTLIB = (3, 11)  # the first version that shapes text
END_FALLBACK = "■"  # for the end token, where no font has its symbol
ZERO_WIDTH_NON_JOINER = "\u200c"
CJK = ("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "FULLWIDTH", "HALFWIDTH")
"""prefixes of the Unicode names of characters that fonts-noto-cjk covers"""
PIXEL_RATIO = 2.0  # pixels of a PNG for each pixel of the SVG


def save_picture(picture: Picture, path: str | Path) -> None:
    """Write a picture as .png or .pdf. A ValueError says which font or package is missing."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"path: expected a name that ends in {' or '.join(ENDINGS)}, got {Path(path).name!r}")
    content = io.BytesIO()
    with warnings.catch_warnings():
        # Fonts that have all characters may still lack a glyph for them together, in an order that no language has.
        warnings.filterwarnings("error", message="Glyph .* missing", category=UserWarning)
        try:
            figure(picture).savefig(content, format=ending[1:], dpi=96 * PIXEL_RATIO)
        except UserWarning as warning:
            raise ValueError(f"cannot be drawn: {warning}") from None
    write_file(path, content.getvalue())


def figure(picture: Picture) -> Figure:
    """Return the picture as a figure, on a light background; a pixel of the SVG is 1/96 inch."""
    _require_matplotlib()
    from matplotlib.figure import Figure

    texts = [_visible_text(item) for item in picture.items if isinstance(item, TextLabel)]
    families = Families()
    families.require("".join(texts))
    figure = Figure((picture.width / 96, picture.height / 96), facecolor=LIGHT_PAPER.ground)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.set_axis_off()
    _draw_cells(axes, [item for item in picture.items if isinstance(item, Cell)], families)
    for item in picture.items:
        if isinstance(item, TextLabel):
            _draw_label(axes, item, families)
        elif isinstance(item, Curve):
            _draw_curve(axes, item)
    return figure


def _require_matplotlib() -> None:
    why = "matplotlib 3.11 or newer, for older ones do not shape Devanagari and Arabic; pip install 'matplotlib>=3.11'"
    try:
        import matplotlib
    except ImportError:
        raise ValueError(f"pictures as .png and .pdf need {why}") from None
    if matplotlib.__version_info__[:2] < MIN_MATPLOTLIB:
        raise ValueError(f"pictures as .png and .pdf need {why}; got matplotlib {matplotlib.__version__}")


# Drawing


def _draw_cells(axes: Axes, cells: list[Cell], families: Families) -> None:
    from matplotlib.collections import PolyCollection

    shades = [colour(cell.level / LEVELS) for cell in cells]
    corners = [[(x, y), (x + width, y), (x + width, y + height), (x, y + height)] for x, y, width, height, *_ in cells]
    axes.add_collection(PolyCollection(corners, facecolors=shades, linewidths=0, antialiaseds=False), autolim=False)
    for cell, shade in zip(cells, shades, strict=True):
        if cell.number:
            x, y = cell.x + cell.width / 2, cell.y + cell.height / 2 + 4
            _draw_text(axes, (x, y), cell.number, 11.5, ink(shade), families, ha="center")


def _draw_label(axes: Axes, label: TextLabel, families: Families) -> None:
    text = families.drawable(_visible_text(label))
    alignment = {"left": "left", "middle": "center", "right": "right"}[label.edge]
    shade = LIGHT_PAPER.faint if label.faint else LIGHT_PAPER.text
    rotation = {"rotation": -label.turn, "rotation_mode": "anchor"}
    lower, turn = 0.35 * label.size, radians(label.turn)  # from the middle line down to the baseline
    baseline = label.x - lower * sin(turn), label.y + lower * cos(turn)
    _draw_text(axes, baseline, text, label.size, shade, families, ha=alignment, **rotation)


def _draw_text(
    axes: Axes, place: tuple[float, float], text: str, size: float, shade: str, families: Families, **options: Any
) -> None:
    """Draw text literally: a dollar sign begins no formula."""
    names = families.covering(text)
    size *= 0.75  # in points
    axes.text(*place, text, fontsize=size, color=shade, family=names, parse_math=False, usetex=False, **options)


def _draw_curve(axes: Axes, curve: Curve) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as CurvePath

    (x, y), (end, foot), half = curve.top, curve.foot, (curve.top[1] + curve.foot[1]) / 2
    codes = [CurvePath.MOVETO, *[CurvePath.CURVE4] * 3]
    path = CurvePath([(x, y), (x, half), (end, half), (end, foot)], codes)
    style = {"edgecolor": LIGHT_PAPER.link, "linewidth": curve.width * 0.75, "alpha": curve.opacity}
    axes.add_patch(PathPatch(path, fill=False, **style))


def _visible_text(label: TextLabel) -> str:
    """Return the text of a label, cut to its room, with blanks for characters without a glyph such as controls."""
    text = label.text if label.faint else short(label.text)
    invisible = ("Cc", "Cs", "Zl", "Zp")
    return "".join(" " if unicodedata.category(each) in invisible else each for each in text)


# Fonts


class Families:
    """The installed font families, preferred ones first, and the characters that they cover."""

    def __init__(self) -> None:
        self._names = installed()
        self._by_name: dict[str, set[int]] = {}  # the characters of the families that were asked for

    def require(self, text: str) -> None:
        """Raise one ValueError for all characters that no font has."""
        if self._missing(text):
            refresh()
            self._names = installed()
        if missing := self._missing(text):
            scripts = ", ".join(sorted({script(character) for character in missing}))
            packages = " ".join(sorted({package(character) for character in missing}))
            raise ValueError(
                f"no installed font has {' '.join(sorted(missing)[:8])} ({scripts}); on Debian: apt install {packages}"
            )

    def drawable(self, text: str) -> str:
        """Return the text with a fallback for the end token where no font has its symbol, and with marks apart from
        letters of another script: no font has both in one cluster."""
        text = text if END not in text or self._has(END) else text.replace(END, END_FALLBACK)
        return "".join(
            ZERO_WIDTH_NON_JOINER + after if foreign_mark(before, after) else after
            for before, after in zip(" " + text, text, strict=False)
        )

    def covering(self, text: str) -> list[str]:
        """Return the first family that covers the text, else several that cover it together."""
        needed = set(codes_with_glyphs(text))
        for name in self._names:
            if needed <= self._characters(name):
                return [name]
        chosen: list[str] = []
        for name in self._names:
            if needed & self._characters(name):
                chosen.append(name)
                needed -= self._characters(name)
            if not needed:
                break
        return chosen

    def _characters(self, name: str) -> set[int]:
        if name not in self._by_name:
            self._by_name[name] = characters(name)
        return self._by_name[name]

    def _missing(self, text: str) -> set[str]:
        return {chr(code) for code in codes_with_glyphs(text) if chr(code) != END and not self._has(chr(code))}

    def _has(self, character: str) -> bool:
        return any(ord(character) in self._characters(name) for name in self._names)


def installed() -> list[str]:
    """Return the families with a regular upright face, without symbol fonts whose glyphs do not match their codes."""
    from matplotlib import get_data_path
    from matplotlib.font_manager import fontManager

    bundled = str(Path(get_data_path()))
    names = {
        entry.name
        for entry in fontManager.ttflist
        if entry.weight in (400, "normal")
        and entry.style == "normal"
        and (entry.name == "DejaVu Sans" or not entry.fname.startswith(bundled))
        and "lastresort" not in entry.name.replace(" ", "").lower()
    }
    order = {name: number for number, name in enumerate(FONTS)}
    return sorted(names, key=lambda name: (order.get(name, len(order)), "Sans" not in name, "Mono" in name, name))


def refresh() -> None:
    """Add the fonts that were installed since matplotlib cached its list."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {entry.fname for entry in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known:
            try:
                fontManager.addfont(path)
            except (RuntimeError, OSError, NotImplementedError, UnicodeError):  # not a usable font
                continue


def characters(name: str) -> set[int]:
    """Return the code points in the character map of a family."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return set(get_font(findfont(FontProperties(family=[name]), fallback_to_default=False)).get_charmap())


def codes_with_glyphs(text: str) -> Iterable[int]:
    """Return the code points that need a glyph: neither blanks nor format characters and variation selectors."""
    visible = (each for each in text if not (each.isspace() or "\ufe00" <= each <= "\ufe0f"))
    return (ord(each) for each in visible if unicodedata.category(each) != "Cf")


def foreign_mark(before: str, mark: str) -> bool:
    """Return whether a mark of one script follows a letter of another, as a Devanagari vowel sign after an r."""
    scripts = script(before), script(mark)
    is_mark = unicodedata.category(mark)[0] == "M" and scripts[1] not in ("Combining", "Variation")
    return is_mark and unicodedata.category(before)[0] == "L" and scripts[0] != scripts[1]


def script(character: str) -> str:
    """Return the script of a character, such as "Devanagari", from its Unicode name; "symbols" where there is none."""
    name = unicodedata.name(character, "")
    if unicodedata.category(character)[0] == "S" or not name:
        return "symbols"
    return "CJK" if name.startswith(("CJK", "IDEOGRAPHIC")) else name.split()[0].capitalize()


def package(character: str) -> str:
    """Return the Debian package that has a font for the character."""
    if unicodedata.name(character, "").startswith(CJK):
        return "fonts-noto-cjk"
    emoji = unicodedata.category(character) == "So" and ord(character) >= 0x1F000
    return "fonts-symbola" if emoji else "fonts-noto-core"
