"""Units: the pieces of a side, joined where a piece boundary would split a grapheme."""

from __future__ import annotations

from bisect import bisect_right

from regard.look.trace import Matrix, Side, by_groups
from regard.look.words import Span
from regard.text.boundaries import grapheme_bounds


def by_units(weights: Matrix, rows: Side, columns: Side) -> Matrix:
    """Return weights between units: [..., row pieces, column pieces] → [..., row units, column units]."""
    return by_groups(weights, units(rows), units(columns))


def units(side: Side) -> list[int]:
    """Return for each piece the index of its unit. The end token is a unit of its own."""
    size, bounds = len(side.text), grapheme_bounds(side.text)
    owners: list[int] = []
    reached = -1  # the last grapheme of which the pieces so far contain a part
    for number, piece in enumerate(side.pieces):
        ending = number == len(side.pieces) - 1 and piece.start == piece.end == size
        first, last = (bisect_right(bounds, place) for place in (piece.start, max(piece.start, piece.end - 1)))
        if piece.start == size and not ending:  # a piece without text of the last grapheme
            first = last = len(bounds) - 1
        joins = first <= reached and not ending
        owners.append(owners[-1] + (not joins) if owners else 0)
        reached = max(reached, last)
    return owners


def unit_spans(side: Side) -> list[Span]:
    """Return the units as spans of the text."""
    spans: list[Span] = []
    for owner, piece in zip(units(side), side.pieces, strict=True):
        if owner == len(spans):
            spans.append(piece)
        else:
            start, end = min(spans[owner].start, piece.start), max(spans[owner].end, piece.end)
            spans[owner] = Span(side.text[start:end], start, end)
    return spans
