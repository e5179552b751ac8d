"""CSV: the fields of the columns that are named are translated; quotes, separators and other columns stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import regex

from regard.text.formats.document import ParsedFile, Unit, has_letters, line_of, lines_as_parts
from regard.text.placeables import Part, joined

SEPARATORS = ",;\t|"
_QUOTED = regex.compile(r'"((?:[^"]|"")*+)"')


class TableCell(NamedTuple):
    """A field of a row, with its quotes."""

    start: int
    end: int
    value: str
    quoted: bool


def read(text: str, columns: Collection[str]) -> ParsedFile:
    """Return the document of a table whose first row has the names of the columns."""
    separator = _separator(text)
    rows = _rows(text, separator)
    names = [cell.value.strip() for cell in rows[0]] if rows else []
    unknown = [name for name in columns if name not in names]
    if unknown or not columns:
        wanted = f"got {unknown[0]!r}" if unknown else "and none is named"
        raise ValueError(f"columns: expected some of {', '.join(map(repr, names))}, {wanted}")
    places = [index for index, name in enumerate(names) if name in columns]
    units = [
        _unit(row[place], separator)
        for row in rows[1:]
        for place in places
        if place < len(row) and has_letters([row[place].value])
    ]
    return ParsedFile(text, tuple(units))


def _separator(text: str) -> str:
    """Return the separator that is the most frequent one in the first row, outside of quotes."""
    header = _QUOTED.sub("", text).split("\n", 1)[0]
    return max(SEPARATORS, key=header.count)


def _rows(text: str, separator: str) -> list[list[TableCell]]:
    plain = regex.compile(rf"[^{regex.escape(separator)}\r\n]*+")
    rows: list[list[TableCell]] = [[]]
    position = len(text) - len(text.removeprefix("\ufeff"))
    while True:
        quoted = _QUOTED.match(text, position)
        if quoted is None and text[position : position + 1] == '"':
            raise ValueError(f"line {line_of(text, position)}: expected a quotation mark that ends the field")
        match = quoted or plain.match(text, position)
        assert match is not None
        value = quoted[1].replace('""', '"') if quoted else match[0]
        rows[-1].append(TableCell(match.start(), match.end(), value, quoted is not None))
        position = match.end()
        following = text[position : position + 1]
        if following and following not in separator + "\r\n":
            raise ValueError(
                f"line {line_of(text, position)}: expected a separator after the quotation mark, got {following!r}"
            )
        if following == separator:
            position += 1
            continue
        position += len("\r\n") if text.startswith("\r\n", position) else len(following)
        if position >= len(text):
            return rows
        rows.append([])


def _unit(cell: TableCell, separator: str) -> Unit:
    def write(translation: Sequence[Part]) -> str:
        value = joined(translation)
        if cell.quoted or any(letter in value for letter in separator + '"\r\n'):
            return '"' + value.replace('"', '""') + '"'
        return value

    return Unit(cell.start, cell.end, lines_as_parts(cell.value), write)
