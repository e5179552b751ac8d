"""Cutting a text that is too long into parts of at most so many tokens."""

from __future__ import annotations

from collections.abc import Sequence

from regard.text.vocabulary import Piece


def cut(text: str, pieces: Sequence[Piece], most: int) -> list[str]:
    """Return parts of a tidied text, each with at most `most` of its pieces, that join up to it.

    A part ends at the last blank that allows this; in a run of letters without a blank, behind a piece.
    """
    parts, begin, first = [], 0, 0
    while len(pieces) - first > most:
        end = max(pieces[first + most - 1].end, begin + 1)
        blank = text.rfind(" ", begin + 1, end + 1)
        place = end if blank < 0 else blank
        parts.append(text[begin:place].strip())
        begin = place
        while first < len(pieces) and pieces[first].start < place:
            first += 1
    return [part for part in (*parts, text[begin:].strip()) if part]
