"""Cutting a text that is too long into parts with a limited number of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from regard.text.vocabulary import Piece


def cut(text: str, pieces: Sequence[Piece], max_pieces: int) -> list[str]:
    """Return consecutive parts of a tidied text, each with at most `max_pieces` of its pieces.

    A part ends at the last space within the limit or, where there is no space, after a piece.
    """
    parts, begin, first = [], 0, 0
    while len(pieces) - first > max_pieces:
        end = max(pieces[first + max_pieces - 1].end, begin + 1)
        space = text.rfind(" ", begin + 1, end + 1)
        cut_at = end if space < 0 else space
        parts.append(text[begin:cut_at].strip())
        begin = cut_at
        while first < len(pieces) and pieces[first].start < cut_at:
            first += 1
    return [part for part in (*parts, text[begin:].strip()) if part]
