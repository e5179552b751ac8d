"""The plain text that a model translates, made from the parts of a text, and where its placeables stood in it.

Tags and other marks are taken out. A word that is not to be translated becomes a placeholder, one token for the model;
for a vocabulary without placeholders, it is taken out. The plain text is tidied:
offsets in it are those that the model and its traces have.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from regard.text.boundaries import is_punctuation
from regard.text.normal import tidy
from regard.text.placeables import Part, Placeable, paired
from regard.text.vocabulary import PLACEHOLDERS

_RUN = re.compile(r"\s+|\S+")


@dataclass(frozen=True)
class MarkedWord:
    """A word that is not translated."""

    placeable: Placeable
    start: int  # where it stands in the plain text; where the next word begins if it was taken out
    end: int  # equal to `start` if it was taken out
    space_before: bool  # also at the beginning of the text
    space_after: bool  # also at its end

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.placeable,)


@dataclass(frozen=True)
class MarkedPair:
    """A pair that encloses words."""

    opening: tuple[Part, ...]  # with the white space that follows it
    closing: tuple[Part, ...]  # with the white space before it
    name: str
    start: int  # what it encloses in the plain text
    end: int


@dataclass(frozen=True)
class MarkedPoint:
    """What stands between words: a tag without words, or a pair that encloses none."""

    parts: tuple[Part, ...]
    start: int  # where the next word begins in the plain text
    before: int  # where the previous word ends
    space_before: bool
    space_after: bool


@dataclass(frozen=True)
class MarkedText:
    """A plain text and what was taken out of it; each in its order, pairs in the order in which they open."""

    plain: str
    words: tuple[MarkedWord, ...] = ()
    pairs: tuple[MarkedPair, ...] = ()
    points: tuple[MarkedPoint, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[Part], placeholders: bool, removed: Collection[int] = ()) -> MarkedText:
        """Return the plain text of the parts. `placeholders`: whether the model's vocabularies have them; `removed`:
        the words, counted from 0, that are taken out all the same."""
        return _Marking(parts, placeholders, removed).result()

    def missing(self, translation: str) -> list[int]:
        """Return the words, counted from 0, whose placeholder is not in a translation."""
        written = Counter(letter for letter in translation if letter in PLACEHOLDERS)
        result = []
        for number, word in enumerate(self.words):
            placeholder = self.plain[word.start : word.end]
            if placeholder in PLACEHOLDERS:
                written[placeholder] -= 1
                result += [number] if written[placeholder] < 0 else []
        return result


class _PlainText:
    """Collects text, tidied."""

    def __init__(self) -> None:
        self.text = ""
        self._space = self._removed = False
        self._waiting: list[list[int]] = []

    def add(self, text: str) -> None:
        for run in _RUN.findall(unicodedata.normalize("NFC", text)):
            if run.isspace():
                self.separate()
                continue
            self.text += " " * (self._space and not (self._removed and is_punctuation(run[0])))
            self._space = self._removed = False
            for place in self._waiting:
                place[0] = len(self.text)
            self._waiting.clear()
            self.text += run

    def separate(self, removed: bool = False) -> None:
        """Let what follows begin a new word, but for punctuation after a word that was removed."""
        self._space, self._removed = bool(self.text), self._removed or removed

    def next_place(self) -> list[int]:
        """Return a list that will contain the offset at which the next letters are added, or the end of the text."""
        place = [-1]
        self._waiting.append(place)
        return place


class _Marking:
    """Reads parts one by one."""

    def __init__(self, parts: Sequence[Part], placeholders: bool, removed: Collection[int]) -> None:
        self._parts, self._placeholders, self._removed = parts, placeholders, removed
        self._plain = _PlainText()
        self._closings = paired(parts)
        self._words: list[tuple[int, list[int], int]] = []  # index of the part, start, length
        self._pairs: dict[int, tuple[list[int], int]] = {}  # by the index of the opening part: start, end
        self._points: list[tuple[int, int, list[int], int]] = []  # first and last index, start, end before
        openings = {closing: opening for opening, closing in self._closings.items()}
        index = 0
        while index < len(parts):
            index = self._read(index, parts[index], openings) + 1

    def _read(self, index: int, part: Part, openings: dict[int, int]) -> int:
        """Read a part, and return the index of the last one that was read."""
        last = self._closings.get(index, index)
        if isinstance(part, str):
            self._plain.add(part)
        elif index in openings:
            self._pairs[openings[index]] = self._pairs[openings[index]][0], len(self._plain.text)
        elif part.role == "word" and self._stand_in(part):
            stand_in = self._stand_in(part)
            self._words.append((index, self._plain.next_place(), len(stand_in)))
            self._plain.add(stand_in)
        elif last > index and any(map(self._is_read, self._parts[index:last])):
            self._pairs[index] = self._plain.next_place(), 0
            return index
        elif part.role == "word":
            self._words.append((index, self._plain.next_place(), 0))
            self._plain.separate(removed=True)
        else:
            if part.role == "point":
                self._plain.separate()
            self._points.append((index, last, self._plain.next_place(), len(self._plain.text)))
        return last

    def _is_read(self, part: Part) -> bool:
        """Return whether the model reads something of a part."""
        return bool(part.strip() if isinstance(part, str) else part.role == "word" and self._stand_in(part))

    def _stand_in(self, part: Placeable) -> str:
        """Return what the model reads in place of a word; nothing if it is taken out."""
        if len(self._words) in self._removed:
            return ""
        if self._placeholders:
            return PLACEHOLDERS[len(self._words) % len(PLACEHOLDERS)]
        return ""

    def result(self) -> MarkedText:
        plain = tidy(self._plain.text)

        def offset(place: list[int]) -> int:
            return min(place[0] if place[0] >= 0 else len(plain), len(plain))

        words = []
        for index, place, length in self._words:
            start = offset(place)
            part = self._parts[index]
            assert isinstance(part, Placeable)
            words.append(MarkedWord(part, start, min(start + length, len(plain)), *self._spaces(index, index)))
        pairs = [
            self._pair(index, offset(self._pairs[index][0]), self._pairs[index][1]) for index in sorted(self._pairs)
        ]
        points = [
            MarkedPoint(tuple(self._parts[first : last + 1]), offset(place), before, *self._spaces(first, last))
            for first, last, place, before in self._points
        ]
        return MarkedText(plain, tuple(words), tuple(pairs), tuple(points))

    def _pair(self, index: int, start: int, end: int) -> MarkedPair:
        opening, closing = self._parts[index], self._parts[self._closings[index]]
        assert isinstance(opening, Placeable)
        after = (" ",) if self._is_blank(index + 1, 0) else ()
        before = (" ",) if self._is_blank(self._closings[index] - 1, -1) else ()
        return MarkedPair((opening, *after), (*before, closing), opening.name, start, max(start, end))

    def _spaces(self, first: int, last: int) -> tuple[bool, bool]:
        """Return whether there is white space, or the end of the text, before and after some parts."""
        return self._is_blank(first - 1, -1, True), self._is_blank(last + 1, 0, True)

    def _is_blank(self, index: int, letter: int, at_end: bool = False) -> bool:
        """Return whether a part is a text that has white space at this end. Tags are skipped if `at_end`, which is what
        is returned beyond the text."""
        step = 1 if letter == 0 else -1
        while at_end and 0 <= index < len(self._parts):
            part = self._parts[index]
            if isinstance(part, str) or part.role == "word":
                break
            index += step
        if not 0 <= index < len(self._parts):
            return at_end
        part = self._parts[index]
        return isinstance(part, str) and part[letter].isspace()
