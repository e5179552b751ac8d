"""Boundaries of words and of user-perceived characters, and the direction of a text."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Literal

import regex

Direction = Literal["ltr", "rtl"]

CHARACTER = regex.compile(r"\X")  # an extended grapheme cluster of Unicode (UAX 29)
JOINERS = "\u200c\u200d"
VIRAMA = 9  # the combining class of the sign that joins two consonants of an Indic script
WITHOUT_SPACES = regex.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""a character of a script without spaces between words: Thai, Lao, Myanmar, Khmer, Hiragana, Katakana, Han"""


def graphemes(text: str) -> list[str]:
    """Return the user-perceived characters: Unicode's grapheme clusters, those joined by an Indic virama as one."""
    return [text[begin:end] for begin, end in pairwise(grapheme_bounds(text))]


def grapheme_bounds(text: str) -> list[int]:
    """Return the boundaries of the graphemes as offsets, including 0 and the length of the text."""
    ends = [match.end() for match in CHARACTER.finditer(text)]
    return [0, *(end for end in ends if end == len(text) or not _joined(text, end))]


def _joined(text: str, offset: int) -> bool:
    """Return whether a virama, perhaps followed by a joiner, joins the letter at `offset` to the one before it."""
    before = text[max(offset - 2, 0) : offset].rstrip(JOINERS)
    return bool(before) and unicodedata.combining(before[-1]) == VIRAMA and unicodedata.category(text[offset]) == "Lo"


def word_bounds(text: str, inner: list[int]) -> list[tuple[int, int]]:
    """Return (begin, end) of each word: words are separated by spaces, and punctuation at their ends is split off.

    In scripts that put no spaces between words, words also end at the offsets in `inner` that are grapheme boundaries.
    """
    bounds: list[tuple[int, int]] = []
    begin, graphemes_at, ordered = 0, set(grapheme_bounds(text)), sorted(inner)
    for run in text.split(" "):
        end = begin + len(run)
        first, last = begin, end
        while first < last and is_punctuation(text[first]):
            first += 1
        while last > first and is_punctuation(text[last - 1]):
            last -= 1
        inside = {first, last}
        if WITHOUT_SPACES.search(text, first, last):
            inside |= set(ordered[bisect_right(ordered, first) : bisect_left(ordered, last)])
        cuts = {begin, end} | (inside & graphemes_at)
        bounds += pairwise(sorted(cuts))
        begin = end + 1
    return bounds


def is_punctuation(character: str) -> bool:
    """Return whether the character is punctuation or a symbol."""
    return unicodedata.category(character)[0] in "PS"


def direction(text: str) -> Direction:
    """Return the direction of the text's first character that has one."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("R", "AL"):
            return "rtl"
        if kind == "L":
            break
    return "ltr"
