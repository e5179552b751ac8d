"""The formats of files whose texts can be translated, by the ending of the file's name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from regard.text.formats import csv_file, html, json_file, markdown, plain, po, srt
from regard.text.formats.document import ParsedFile, Unit
from regard.text.line_limits import LongLine, ending, raw_lines, why_unreadable
from regard.text.placeables import Part, Placeable, joined

FORMATS: Mapping[str, Callable[[str], ParsedFile]] = {
    ".html": html.read,
    ".htm": html.read,
    ".xhtml": html.read,
    ".md": markdown.read,
    ".markdown": markdown.read,
    ".srt": srt.read,
    ".po": po.read,
    ".pot": po.read,
    ".json": json_file.read,
}
TABLE = ".csv"
PLAIN = ".txt"  # translated line by line, but by a server, which gets whole files


def is_document(path: Path) -> bool:
    """Return whether a file, by its name, is translated as a whole, not line by line."""
    return ending(path) in (*FORMATS, TABLE)


def read_document(path: Path, columns: Sequence[str] = ()) -> ParsedFile:
    """Read a file, which may be gzip; `columns` are the names of those to translate, for .csv alone."""
    lines = list(raw_lines(path))
    if any(isinstance(line, LongLine) for line in lines):
        raise ValueError(f"{path}: a line is {why_unreadable(LongLine())}")
    return document_of(path, b"".join(lines), columns)


def document_of(path: Path, content: bytes, columns: Sequence[str] = ()) -> ParsedFile:
    """Return the document of a file's content; the name of the file says which format it has."""
    try:
        return parsed(path, content.decode("utf-8"), columns)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8, and byte {error.start:,} is not") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def written(
    path: Path, document: ParsedFile, translations: Sequence[Sequence[Part]], columns: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """Return the text of the file with translated units, and the texts that stay as they were because their translation
    would break the file.

    The result is read again: its texts and its structure must be where they were. Raise a ValueError if they are not.
    """
    chosen = list(translations)
    left = [number for number, unit in enumerate(document.units) if not document.can_write(unit, chosen[number])]
    try:
        text = _checked(path, document, chosen, columns)
    except ValueError:
        for number, unit in enumerate(document.units):
            others = [each.parts for each in document.units]
            try:
                _checked(path, document, [*others[:number], chosen[number], *others[number + 1 :]], columns)
            except ValueError:
                chosen[number] = unit.parts
                left.append(number)
        text = _checked(path, document, chosen, columns)
    return text, [joined(document.units[number].parts) for number in sorted(set(left))]


def _checked(path: Path, document: ParsedFile, translations: Sequence[Sequence[Part]], columns: Sequence[str]) -> str:
    """Return the text of the file with translated units; raise a ValueError if they would break it."""
    text, places = document.with_translations(translations)
    try:
        again = parsed(path, text, columns)
    except ValueError as error:
        raise ValueError(f"{path}: a translation would break the file: {error}") from None
    expected = dict(zip(places, zip(document.units, translations, strict=True), strict=True))
    for unit in again.units:
        before = expected.get((unit.start, unit.end))
        if before is None or _own(before[0], unit.parts) not in (_own(*before), _own(before[0], before[0].parts)):
            shown = text[unit.start : unit.end][:60]
            raise ValueError(f"{path}: a translation would break the file at {shown!r}")
    if again.structure != document.structure:
        raise ValueError(f"{path}: a translation would break the file: its blocks would change")
    return text


def _own(unit: Unit, parts: Sequence[Part]) -> Counter[Placeable]:
    """Return the placeables among the parts that the file itself had in a unit."""
    return Counter(part for part in parts if isinstance(part, Placeable) and part in unit.parts)


def parsed(path: Path, text: str, columns: Sequence[str]) -> ParsedFile:
    """Return the document of a file's text."""
    if ending(path) == TABLE:
        return csv_file.read(text, columns)
    if ending(path) == PLAIN:
        return plain.read(text)
    return FORMATS[ending(path)](text)
