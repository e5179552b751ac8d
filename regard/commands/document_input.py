"""A file that `translate` translates as a whole: a page, a text with marks, subtitles, messages or a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.commands.input import MAX_CHUNK_LINES
from regard.commands.options import refuse_idle

if TYPE_CHECKING:
    from regard.text.keep import Keep
    from regard.text.placeables import Part


class DocumentInput:
    """The segments of a file, and the file with their translations."""

    def __init__(self, path: Path, columns: Sequence[str], keep: Keep | None) -> None:
        from regard.text.formats.registry import read_document
        from regard.text.formats.segments import segments
        from regard.text.keep import DEFAULT

        self._path, self._columns = path, columns
        self._keep = DEFAULT if keep is None else DEFAULT | keep
        self._document = read_document(path, columns)
        self._segments = segments(self._document, self._keep)
        self._translations: list[list[Part]] = []

    def chunks(self) -> Iterator[list[list[Part]]]:
        """Yield the segments, some at a time."""
        for first in range(0, len(self._segments), MAX_CHUNK_LINES):
            yield self._segments[first : first + MAX_CHUNK_LINES]

    def add(self, translation: Sequence[Part]) -> None:
        """Add the translation of the next segment."""
        self._translations.append(list(translation))

    def result(self) -> tuple[str, list[str]]:
        """Return the file with the translations of all segments, and a notice for what could not be translated; raise a
        ValueError if they would break the file."""
        from regard.text.formats.registry import written
        from regard.text.formats.segments import with_segments

        units = with_segments(self._document, self._keep, self._translations)
        text, left = written(self._path, self._document, units, self._columns)
        count = "1 text stays" if len(left) == 1 else f"{len(left):,} texts stay"
        notice = f"{self._path}: {count} as in the source: the translation would break the file"
        return text, [f"{notice}, such as {left[0][:60]!r}"] if left else []


def input_document(
    texts: Sequence[str] | None, path: Path | None, columns: str | None, keep: Keep | None, idle: Mapping[str, object]
) -> DocumentInput | None:
    """Return the file to translate as a whole, by the ending of its name; None: the input is translated line by line.

    `idle`: options that have no effect on whole files.
    """
    from regard.text.formats.registry import TABLE, is_document

    whole = path is not None and not texts and is_document(path)
    if not (whole and path is not None and path.suffix.lower() == TABLE):
        refuse_idle({"--columns": columns}, "expected --input FILE.csv with it")
    if path is None or not whole:
        return None
    refuse_idle(idle, f"expected it without a whole file, such as {path.name}")
    if not path.is_file():
        raise ValueError(f"{path}: expected a file, " + ("got a folder" if path.is_dir() else "and there is none"))
    names = [name.strip() for name in columns.split(",")] if columns else []
    return DocumentInput(path, names, keep)
