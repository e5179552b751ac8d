"""What `--keep` asks for: kinds of things that are not translated, and where they are in a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import regex

from regard.text.inline_markup import Match, markup
from regard.text.placeables import Part, Placeable, merged
from regard.text.vocabulary import PLACEHOLDERS

Kind = Literal["numbers", "addresses", "markup", "names"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PATTERN = "re:"
OWN_PATTERN = "pattern"  # the kind of what a pattern of one's own matches
_LETTER = r"\p{L}\p{M}\p{N}_"
_RESERVED = regex.compile(f"[{''.join(PLACEHOLDERS)}]")
_NUMBER = regex.compile(
    rf"(?<![{_LETTER}])(?:(?<![^\s(\[])[-+−])?\p{{Nd}}+(?:[.,:/'’\u00a0\u202f-]\p{{Nd}}+)*(?![{_LETTER}])"
)
_URL = regex.compile(r"(?:(?:https?|ftp)://|mailto:|www\.)[^\s<>\"“”]+")
_MAIL = regex.compile(r"[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+")
_NAME = regex.compile(rf"(?<![{_LETTER}@#])\p{{Lu}}(?:[{_LETTER}]+|(?=['’]\p{{Lu}}))(?:['’-]\p{{Lu}}[{_LETTER}]+)*")
_SENTENCE_START = regex.compile(r"(?:^|[.?!:।。…]['\"”’)]*\s)['\"“”‘’(¿¡\s-]*$")


@dataclass(frozen=True)
class Keep:
    """The kinds of things to keep, and patterns of one's own."""

    kinds: tuple[Kind, ...] = ()
    patterns: tuple[str, ...] = ()  # regular expressions
    inside_words: bool = False  # whether Markdown's emphasis can stand inside of words, as in whole files

    @classmethod
    def parse(cls, *values: str) -> Keep:
        """Return the options of texts such as `numbers,markup` or `names,re:[A-Z]{2,}`; a pattern ends the text."""
        kinds: list[str] = []
        patterns: list[str] = []
        for value in values:
            before, marker, pattern = _at_pattern(value)
            kinds += [name.strip() for name in before.split(",")] if before.strip() or not marker else []
            patterns += [pattern] if marker else []
        unknown = [name for name in kinds if name not in KINDS]
        if unknown:
            raise ValueError(f"keep: expected some of {', '.join(KINDS)}, or re:PATTERN, got {unknown[0]!r}")
        for pattern in patterns:
            _compiled(pattern)
        return cls(tuple(kind for kind in KINDS if kind in kinds), tuple(patterns))

    def __or__(self, other: Keep) -> Keep:
        kinds = tuple(kind for kind in KINDS if kind in (*self.kinds, *other.kinds))
        patterns = tuple(dict.fromkeys((*self.patterns, *other.patterns)))
        return Keep(kinds, patterns, self.inside_words or other.inside_words)

    def parts(self, text: str) -> list[Part]:
        """Return the parts of a text: what is translated, and what is not.

        What matches several kinds belongs to the first: patterns of one's own, markup, addresses, numbers, names.
        """
        taken: list[Match] = []
        covered = [False] * len(text)
        for matches in self._candidates(text, taken):
            for group in matches:
                if not any(any(covered[start:end]) for start, end, _ in group):
                    for start, end, _ in group:
                        covered[start:end] = [True] * (end - start)
                    taken += group
        return _split(text, sorted(taken, key=lambda each: each[:2]))

    def of_parts(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts with further placeables in their strings."""
        return merged([inner for part in parts for inner in (self.parts(part) if isinstance(part, str) else [part])])

    def _candidates(self, text: str, taken: list[Match]) -> Iterator[Iterator[list[Match]]]:
        """Yield the matches of each kind; the parts of a match, such as both ends of a pair, go together. `taken` are
        those of earlier kinds that are placeables already."""
        yield _words(_RESERVED, text, OWN_PATTERN)
        for pattern in self.patterns:
            yield _words(_compiled(pattern), text, OWN_PATTERN)
        if "markup" in self.kinds:
            yield markup(text, self.inside_words)
        if "addresses" in self.kinds:
            yield _addresses(text)
        if "numbers" in self.kinds:
            yield _words(_NUMBER, text, "numbers")
        if "names" in self.kinds:
            yield _names("".join(_masked(text, taken)))


DEFAULT = Keep(("numbers", "addresses", "markup"))
"""what is always kept in whole files"""


def _at_pattern(value: str) -> tuple[str, str, str]:
    """Split an option before the first of its names that begins with `re:`."""
    start = 0 if value.startswith(PATTERN) else value.find("," + PATTERN) + 1
    if not value[start:].startswith(PATTERN):
        return value, "", ""
    return value[:start].rstrip(","), PATTERN, value[start + len(PATTERN) :]


def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"keep: expected a regular expression after re:, got {pattern!r}: {error}") from None
    if compiled.fullmatch(""):
        raise ValueError(f"keep: expected a regular expression that does not match nothing, got {pattern!r}")
    return compiled


def _words(pattern: regex.Pattern[str], text: str, kind: str) -> Iterator[list[Match]]:
    for match in pattern.finditer(text):
        if match[0].strip():
            yield [(*match.span(), Placeable(match[0], "word", kind))]


def _addresses(text: str) -> Iterator[list[Match]]:
    """Yield URLs and e-mail addresses, without the punctuation that follows them in a sentence."""
    for pattern in (_URL, _MAIL):
        for match in pattern.finditer(text):
            address = match[0]
            while address and (address[-1] in ".,;:!?'’*_|।" or (address[-1] in ")]}" and _is_unopened(address))):
                address = address[:-1]
            if len(address) > len("www."):
                yield [(match.start(), match.start() + len(address), Placeable(address, "word", "addresses"))]


def _is_unopened(address: str) -> bool:
    """Return whether the bracket at the end of an address was opened outside of it."""
    close = address[-1]
    return address.count(close) > address.count({")": "(", "]": "[", "}": "{"}[close])


def _names(text: str) -> Iterator[list[Match]]:
    """Yield words with a capital letter that begin no sentence, where all words have one; neighbours go together."""
    end, start = -1, -1
    for match in _NAME.finditer(text):
        if _SENTENCE_START.search(text, 0, match.start()):
            continue
        if start >= 0 and text[end : match.start()] == " ":
            end = match.end()
            continue
        if start >= 0:
            yield [(start, end, Placeable(text[start:end], "word", "names"))]
        start, end = match.span()
    if start >= 0:
        yield [(start, end, Placeable(text[start:end], "word", "names"))]


def _masked(text: str, taken: Sequence[Match]) -> list[str]:
    """Return the letters of a text with blanks for what is a placeable already."""
    letters = list(text)
    for start, end, _ in taken:
        letters[start:end] = " " * (end - start)
    return letters


def _split(text: str, matches: Sequence[Match]) -> list[Part]:
    parts: list[Part] = []
    begin = 0
    for start, end, placeable in matches:
        parts += [text[begin:start], placeable]
        begin = end
    return merged([*parts, text[begin:]])
