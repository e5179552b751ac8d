"""A file as a document: its text, and the units of it that are translated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex

from regard.text.normal import tidy
from regard.text.placeables import Part, Placeable, joined

_LETTER = regex.compile(r"\p{L}")
LINE_END = "line end"  # the name of a break


@dataclass(frozen=True)
class Unit:
    """A part of a file that is translated as a whole. `write` returns how translated parts are written there; None:
    their marks would not be those of the source."""

    start: int  # offsets in the text of the file
    end: int
    parts: tuple[Part, ...]
    write: Callable[[Sequence[Part]], str | None]


@dataclass(frozen=True)
class ParsedFile:
    """The text of a file, and the units in it, in their order."""

    text: str
    units: tuple[Unit, ...]
    structure: tuple[str, ...] = ()  # what no translation may change, where units alone do not show it

    def with_translations(self, translations: Sequence[Sequence[Part]]) -> tuple[str, list[tuple[int, int]]]:
        """Return the text with translated units, and where these are in it. A unit whose translation has the same
        letters, or cannot be written, stays as it was."""
        text, begin, places = "", 0, []
        for unit, translation in zip(self.units, translations, strict=True):
            written = None if _same(unit, translation) else unit.write(translation)
            text += self.text[begin : unit.start]
            places.append((len(text), len(text) + (unit.end - unit.start if written is None else len(written))))
            text += self.text[unit.start : unit.end] if written is None else written
            begin = unit.end
        return text + self.text[begin:], places

    def can_write(self, unit: Unit, translation: Sequence[Part]) -> bool:
        """Return whether a translation can be written in the format."""
        return _same(unit, translation) or unit.write(translation) is not None


def _same(unit: Unit, translation: Sequence[Part]) -> bool:
    return tidy(joined(unit.parts)) == tidy(joined(translation))


def has_letters(parts: Sequence[Part]) -> bool:
    """Return whether there is something to translate."""
    return any(isinstance(part, str) and _LETTER.search(part) for part in parts)


def lines_as_parts(text: str) -> tuple[Part, ...]:
    """Return a text of several lines as parts; the line ends are breaks, and each line is translated by itself."""
    parts: list[Part] = []
    for line in regex.splititer(r"(\r?\n|\r)", text):
        parts.append(Placeable(line, "break", LINE_END) if line and not line.strip("\r\n") else line)
    return tuple(part for part in parts if part)


def line_of(text: str, offset: int) -> int:
    """Return the number of the line at an offset, counted from 1."""
    return text.count("\n", 0, offset) + 1
