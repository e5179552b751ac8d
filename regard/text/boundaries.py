"""Where words and characters as people see them begin and end, and which way a text runs."""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Literal

import regex

Direction = Literal["ltr", "rtl"]

CHARACTER = regex.compile(r"\X")
"""what Unicode takes for one character (UAX 29)"""
JOINERS = "\u200c\u200d"
VIRAMA = 9
"""the combining class of the sign that joins two consonants of an Indic script"""
WITHOUT_BLANKS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""scripts that put no blanks between words"""


def graphemes(text: str) -> list[str]:
    """The characters as people see them: Unicode's, and consonants of an Indic script joined by a virama are one."""
    return [text[begin:end] for begin, end in pairwise(grapheme_bounds(text))]


def grapheme_bounds(text: str) -> list[int]:
    """0, every place where a character ends and another begins, and the length."""
    ends = [found.end() for found in CHARACTER.finditer(text)]
    return [0, *(end for end in ends if end == len(text) or not _joined(text, end))]


def _joined(text: str, place: int) -> bool:
    """Does a virama join the letter at `place` to the one before? A joiner may stand between."""
    before = text[max(place - 2, 0) : place].rstrip(JOINERS)
    return bool(before) and unicodedata.combining(before[-1]) == VIRAMA and unicodedata.category(text[place]) == "Lo"


def word_bounds(text: str, inner: list[int]) -> list[tuple[int, int]]:
    """(begin, end) of each word: runs without a blank, punctuation at their ends apart.

    In scripts that put no blanks between words, words end at the places `inner`, as far as characters do.
    """
    found: list[tuple[int, int]] = []
    begin, whole = 0, set(grapheme_bounds(text))
    for run in text.split(" "):
        end = begin + len(run)
        first, last = begin, end
        while first < last and is_punctuation(text[first]):
            first += 1
        while last > first and is_punctuation(text[last - 1]):
            last -= 1
        inside = {first, last}
        if any(_without_blanks(character) for character in text[first:last]):
            inside |= {place for place in inner if first < place < last}
        cuts = {begin, end} | (inside & whole)
        found += pairwise(sorted(cuts))
        begin = end + 1
    return found


def is_punctuation(character: str) -> bool:
    """Punctuation or a symbol."""
    return unicodedata.category(character)[0] in "PS"


def _without_blanks(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in WITHOUT_BLANKS)


def direction(text: str) -> Direction:
    """Which way it runs: as its first letter that runs either way."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("R", "AL"):
            return "rtl"
        if kind == "L":
            break
    return "ltr"
