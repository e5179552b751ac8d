"""A file that is translated as a whole: its segments, and the file with their translations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.text.formats.document import ParsedFile
from regard.text.formats.registry import written
from regard.text.formats.segments import Segment, segments, with_segments
from regard.text.keep import DEFAULT, Keep
from regard.text.placeables import Part


class SegmentedFile:
    """The segments of a file; numbers, addresses and markup in them are always kept, and what `keep` names."""

    def __init__(self, path: Path, document: ParsedFile, columns: Sequence[str] = (), keep: Keep | None = None) -> None:
        self._path, self._document, self._columns = path, document, columns
        self._keep = DEFAULT if keep is None else DEFAULT | keep
        self.segments: list[Segment] = segments(document, self._keep)

    def result(self, translations: Sequence[Sequence[Part]]) -> tuple[str, list[str]]:
        """Return the file with the translations of all segments, and a notice for what could not be translated; raise a
        ValueError if they would break the file."""
        units = with_segments(self._document, self._keep, [list(each) for each in translations])
        text, left = written(self._path, self._document, units, self._columns)
        count = "1 text stays" if len(left) == 1 else f"{len(left):,} texts stay"
        notice = f"{self._path}: {count} as in the source: the translation would break the file"
        return text, [f"{notice}, such as {left[0][:60]!r}"] if left else []
