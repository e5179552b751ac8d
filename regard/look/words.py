"""Spans of a text: the pieces of a vocabulary, and the words that they make up."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from regard.text.boundaries import word_bounds


@dataclass(frozen=True)
class Span:
    """A piece or word of a text: text[start:end]. The end token is an empty span at the end of the text."""

    text: str
    start: int
    end: int


def has_end(text: str, pieces: Sequence[Span]) -> bool:
    """Return whether the last piece is the end token: an empty span at the end of the text."""
    return bool(pieces) and pieces[-1].start == pieces[-1].end == len(text)


def words(text: str, pieces: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """Return the words of a text, and for each piece the index of its word. The end token is a word of its own.

    A piece without text, such as the first byte of a character, belongs to the word at its position.
    """
    ended = has_end(text, pieces)
    places = [min(_after_blanks(piece), len(text) - 1) for piece in (pieces[:-1] if ended else pieces)]
    bounds = word_bounds(text, places)
    starts = [begin for begin, _ in bounds]
    owners = [bisect_right(starts, place) - 1 if bounds else 0 for place in places]
    used = sorted(set(owners)) if bounds else []
    # A word in which no piece begins is joined to the word before it.
    ends = [bounds[after - 1][1] for after in (*used[1:], len(bounds))] if used else []
    spans = [Span(text[bounds[word][0] : end], bounds[word][0], end) for word, end in zip(used, ends, strict=True)]
    places_of = {word: place for place, word in enumerate(used)}
    owners = [places_of[word] for word in owners] if used else owners
    if ended:
        owners.append(len(spans))
        spans.append(Span("", len(text), len(text)))
    elif not spans and owners:
        spans.append(Span("", 0, 0))
    return spans, owners


def _after_blanks(piece: Span) -> int:
    """Return where the text of a piece begins; blanks before a word belong to no word."""
    return piece.start + len(piece.text) - len(piece.text.lstrip(" ")) if piece.text.strip(" ") else piece.start
