"""Plain text: each line that has letters is a unit; empty lines and the white space around a line stay."""

from __future__ import annotations

import regex

from regard.text.formats.document import ParsedFile, Unit, has_letters
from regard.text.placeables import joined

_LINE = regex.compile(r"[^\r\n]+")


def read(text: str) -> ParsedFile:
    """Return the document of a plain text."""
    begin = len(text) - len(text.removeprefix("\ufeff"))
    units = []
    for match in _LINE.finditer(text, begin):
        line = match[0]
        start = match.start() + len(line) - len(line.lstrip())
        content = line.strip()
        if has_letters([content]):
            units.append(Unit(start, start + len(content), (content,), joined))
    return ParsedFile(text, tuple(units))
