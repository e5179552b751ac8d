"""Where words and characters as people see them begin and end, and which way a text runs."""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Literal

Direction = Literal["ltr", "rtl"]

JOINERS = "\u200c\u200d"
VIRAMA = 9
"""the combining class of the sign that joins two consonants of an Indic script"""
FOLLOWS = {"L": "LVsS", "V": "VT", "T": "T", "s": "VT", "S": "T"}
"""which parts of Hangul go on in the same syllable"""
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
    """The characters as people see them: base and marks, joined consonants, joined emoji, syllables of jamo, flags."""
    return [text[begin:end] for begin, end in pairwise(grapheme_bounds(text))]


def grapheme_bounds(text: str) -> list[int]:
    """0, every place where a character ends and another begins, and the length."""
    inner = [place for place in range(1, len(text)) if not _belongs(text, place)]
    return [0, *inner, len(text)] if text else [0]


def _belongs(text: str, place: int) -> bool:
    """Does the character at `place` belong to the one before?"""
    before, here = text[place - 1], text[place]
    if unicodedata.category(here)[0] == "M" or here in JOINERS or "\U0001f3fb" <= here <= "\U0001f3ff":
        return True
    if before == "\u200d" and unicodedata.category(here) == "So":  # emoji joined
        return True
    if unicodedata.combining(before.strip(JOINERS) or text[place - 2 : place - 1] or " ") == VIRAMA:
        return unicodedata.category(here) == "Lo"
    if "\U0001f1e6" <= here <= "\U0001f1ff":  # the second letter of a flag
        run = len(text[:place]) - len(text[:place].rstrip("".join(map(chr, range(0x1F1E6, 0x1F200)))))
        return run % 2 == 1
    return _hangul(here) in FOLLOWS.get(_hangul(before), "")


def _hangul(character: str) -> str:
    """L, V or T: a letter that leads a syllable, its vowel, its end; s, S: a syllable without and with an end."""
    code = ord(character)
    if 0xAC00 <= code <= 0xD7A3:
        return "s" if (code - 0xAC00) % 28 == 0 else "S"
    for kind, first, last in (("L", 0x1100, 0x115F), ("V", 0x1160, 0x11A7), ("T", 0x11A8, 0x11FF)):
        if first <= code <= last:
            return kind
    return "-"


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
