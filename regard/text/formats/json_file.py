"""JSON: all strings that are values are translated; keys, numbers and the layout stay."""

from __future__ import annotations

import json
from collections.abc import Sequence

import regex

from regard.text.formats.document import ParsedFile, Unit, has_letters, lines_as_parts
from regard.text.pairs import has_lone_surrogate
from regard.text.placeables import Part, joined

_STRING = regex.compile(r'"(?:[^"\\]|\\.)*+"')
_COLON = regex.compile(r"\s*+:")


def read(text: str) -> ParsedFile:
    """Return the document of a JSON file; raise a ValueError if it is not JSON."""
    try:
        json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}: expected JSON: {error.msg}, column {error.colno}") from None
    except RecursionError:
        raise ValueError("expected JSON that is nested less deeply") from None
    ascii_only = text.isascii() and "\\u" in text

    def write(translation: Sequence[Part]) -> str:
        return json.dumps(joined(translation), ensure_ascii=ascii_only)

    units = []
    for match in _STRING.finditer(text):
        if _COLON.match(text, match.end()):
            continue
        value = json.loads(match[0])
        parts = lines_as_parts(value)
        if has_letters(parts) and not has_lone_surrogate(value):
            units.append(Unit(match.start(), match.end(), parts, write))
    return ParsedFile(text, tuple(units))
