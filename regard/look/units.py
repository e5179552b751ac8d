"""Units: the pieces of a side, put together where one would cut a character as people see it."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from regard.look.trace import Matrix, Side, Span
from regard.text.boundaries import grapheme_bounds


def by_units(weights: Matrix, rows: Side, columns: Side) -> Matrix:
    """[..., row pieces, column pieces] → [..., row units, column units]: summed where seen, else averaged."""
    averages, sums = _membership(units(rows)), _membership(units(columns))
    return np.asarray((averages / averages.sum(0)).T @ weights @ sums, np.float32)


def units(side: Side) -> list[int]:
    """For each piece, the number of its unit. The end token stays alone."""
    size, bounds = len(side.text), grapheme_bounds(side.text)
    owners: list[int] = []
    reached = -1  # the last character that the pieces so far have a part in
    for number, piece in enumerate(side.pieces):
        ending = number == len(side.pieces) - 1 and piece.start == piece.end == size
        first, last = (bisect_right(bounds, place) for place in (piece.start, max(piece.start, piece.end - 1)))
        if piece.start == size and not ending:  # a part without text of the last character
            first = last = len(bounds) - 1
        joins = first <= reached and not ending
        owners.append(owners[-1] + (not joins) if owners else 0)
        reached = max(reached, last)
    return owners


def wholes(side: Side) -> list[Span]:
    """The units, as parts of the text."""
    spans: list[Span] = []
    for owner, piece in zip(units(side), side.pieces, strict=True):
        if owner == len(spans):
            spans.append(piece)
        else:
            start, end = min(spans[owner].start, piece.start), max(spans[owner].end, piece.end)
            spans[owner] = Span(side.text[start:end], start, end)
    return spans


def _membership(owners: list[int]) -> Matrix:
    """[parts, wholes]: 1 where one belongs to the other."""
    found = np.zeros((len(owners), max(owners, default=-1) + 1), np.float32)
    found[np.arange(len(owners)), owners] = 1
    return found
