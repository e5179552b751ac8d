"""Texts without punctuation, as people type them in a hurry."""

from __future__ import annotations

import unicodedata

import regex as re

from regard.text.normal import APOSTROPHES, tidy

STOPS = ".।。"
_MARK = re.compile(rf"[\p{{P}}{re.escape(APOSTROPHES)}]")


def without_stop(source: str, target: str) -> tuple[str, str] | None:
    """Return the pair without the full stops at its ends; None if a side has none or consists of nothing else."""
    if source[-1:] in STOPS and target[-1:] in STOPS and len(source) > 1 and len(target) > 1:
        return source[:-1].rstrip(), target[:-1].rstrip()
    return None


def without_punctuation(source: str, target: str) -> tuple[str, str] | None:
    """Return the pair without punctuation; None if nothing else is left of a side.

    Inside a word the target keeps its marks, because its spelling must stay right (l'homme, well-known); the source
    loses apostrophes and full stops, and is split at other marks: dont, US, well known. Marks between digits stay.
    """
    sides = tidy(_MARK.sub(_source_mark, source)), tidy(_MARK.sub(_target_mark, target))
    return sides if all(map(_has_words, sides)) else None


def _source_mark(match: re.Match[str]) -> str:
    """Return what a punctuation mark of a source becomes."""
    on_target = _target_mark(match)
    if on_target == " " or _is_between(match, "N"):
        return on_target
    return "" if match[0] in APOSTROPHES or match[0] in STOPS else " "


def _target_mark(match: re.Match[str]) -> str:
    """Return what a punctuation mark of a target becomes."""
    return match[0] if _is_between(match, "LMN") else " "


def _is_between(match: re.Match[str], categories: str) -> bool:
    """Return whether the characters before and after are both of these categories."""
    before, after = match.string[max(match.start() - 1, 0) : match.start()], match.string[match.end() : match.end() + 1]
    return all(letter and unicodedata.category(letter)[0] in categories for letter in (before, after))


def _has_words(text: str) -> bool:
    return any(unicodedata.category(letter)[0] in "LMN" for letter in text)
