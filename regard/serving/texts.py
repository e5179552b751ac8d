"""A text of a request: the segments that are translated, and the text with their translations in place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from regard.text.formats.registry import parsed
from regard.text.formats.segmented_file import SegmentedFile
from regard.text.formats.segments import Segment
from regard.text.keep import Keep
from regard.text.placeables import Part, Placeable, joined

MAX_MARK_WORK = 1_000_000_000  # placeables of a paragraph times the square of its characters
_LINE_END = re.compile(r"(\r\n|\r|\n)")
_HTML = Path("q.html")  # a name whose ending says the format


class SegmentedText(Protocol):
    """A text as segments."""

    @property
    def segments(self) -> Sequence[Segment]: ...

    def result(self, translations: Sequence[Sequence[Part]]) -> str:
        """Return the text with the translations of all segments."""


class PlainLines:
    """A text whose lines are translated one by one; line ends and the white space around lines stay."""

    def __init__(self, text: str, keep: Keep | None) -> None:
        self._pieces = _LINE_END.split(text)  # lines and line ends in turn
        self.segments: list[Segment] = []
        self._places: list[int] = []
        for place in range(0, len(self._pieces), 2):
            line = self._pieces[place].strip()
            if line:
                self.segments.append([line] if keep is None else keep.parts(line))
                self._places.append(place)

    def result(self, translations: Sequence[Sequence[Part]]) -> str:
        pieces = list(self._pieces)
        for place, translation in zip(self._places, translations, strict=True):
            line = pieces[place]
            before, after = len(line) - len(line.lstrip()), len(line) - len(line.rstrip())
            pieces[place] = line[:before] + joined(translation) + line[len(line) - after :]
        return "".join(pieces)


class HtmlText:
    """A text with markup: what stands between tags is translated."""

    def __init__(self, text: str, keep: Keep | None) -> None:
        self._file = SegmentedFile(_HTML, parsed(_HTML, text, ()), keep=keep)
        self.segments: Sequence[Segment] = self._file.segments

    def result(self, translations: Sequence[Sequence[Part]]) -> str:
        return self._file.result(translations)[0]


def check_marks(segments: Sequence[Segment]) -> None:
    """Raise a ValueError for a paragraph with so many tags and other placeables that putting them back takes long: the
    time grows with their number and with the square of the length."""
    for segment in segments:
        marks = sum(isinstance(part, Placeable) for part in segment)
        length = len(joined(segment))
        if marks * length**2 > MAX_MARK_WORK:
            raise ValueError(
                f"expected fewer tags and other things to keep in a paragraph, got {marks:,} in {length:,} characters"
            )


def plain_text(segments: Sequence[Segment]) -> str:
    """Return the words of segments, without markup and other things that are not translated."""
    return "\n".join("".join(part for part in segment if isinstance(part, str)) for segment in segments)
