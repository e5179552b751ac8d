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
        from regard.text.formats.segmented_file import SegmentedFile

        self._file = SegmentedFile(path, read_document(path, columns), columns, keep)
        self._translations: list[list[Part]] = []

    def chunks(self) -> Iterator[list[list[Part]]]:
        """Yield the segments, some at a time."""
        for first in range(0, len(self._file.segments), MAX_CHUNK_LINES):
            yield self._file.segments[first : first + MAX_CHUNK_LINES]

    def add(self, translation: Sequence[Part]) -> None:
        """Add the translation of the next segment."""
        self._translations.append(list(translation))

    def result(self) -> tuple[str, list[str]]:
        """Return the file with the translations of all segments, and a notice for what could not be translated; raise a
        ValueError if they would break the file."""
        return self._file.result(self._translations)


def input_document(
    texts: Sequence[str] | None, path: Path | None, columns: str | None, keep: Keep | None, idle: Mapping[str, object]
) -> DocumentInput | None:
    """Return the file to translate as a whole, by the ending of its name; None: the input is translated line by line.

    `idle`: options that have no effect on whole files.
    """
    from regard.text.formats.registry import TABLE, is_document
    from regard.text.line_limits import ending

    whole = path is not None and not texts and is_document(path)
    if not (whole and path is not None and ending(path) == TABLE):
        refuse_idle({"--columns": columns}, "expected --input FILE.csv with it")
    if path is None or not whole:
        return None
    refuse_idle(idle, f"expected it without a whole file, such as {path.name}")
    if not path.is_file():
        raise ValueError(f"{path}: expected a file, " + ("got a folder" if path.is_dir() else "and there is none"))
    names = [name.strip() for name in columns.split(",")] if columns else []
    return DocumentInput(path, names, keep)
