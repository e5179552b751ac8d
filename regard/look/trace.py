"""A trace: one translation with what every step looked at, by pieces as models have them, by words as people do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Matrix = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Span:
    """A piece or word of a text: text[start:end]. The end token stands at the end, with nothing in it."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Trace:
    source: str
    target: str
    source_pieces: list[Span]
    target_pieces: list[Span]
    weights: Matrix
    """[target pieces, source pieces]: what each step looked at"""

    def by_words(self) -> tuple[list[Span], list[Span], Matrix]:
        """(target words, source words, weights between them).

        A word looks at a word with the sum over the latter's pieces, averaged over its own. Where the end token got
        weight, or said nothing more, it stands as a word of its own at the end.
        """
        rows, row_of = words(self.target, self.target_pieces)
        columns, column_of = words(self.source, self.source_pieces)
        table = np.zeros((len(rows), len(columns)), np.float32)
        counts = np.bincount(row_of, minlength=len(rows)).astype(np.float32)
        np.add.at(table, (np.array(row_of)[:, None], np.array(column_of)[None, :]), self.weights)
        return rows, columns, (table / np.maximum(counts, 1)[:, None]).astype(np.float32)


def words(text: str, pieces: list[Span]) -> tuple[list[Span], list[int]]:
    """The words that pieces belong to, and for each piece which: runs without a blank; an empty piece is its own."""
    spans: list[Span] = []
    owners: list[int] = []
    for piece in pieces:
        begin = text.rfind(" ", 0, piece.start) + 1 if piece.text or piece.start < len(text) else len(text)
        if not spans or spans[-1].start != begin or begin == len(text):
            end = text.find(" ", begin)
            end = len(text) if end < 0 else end
            spans.append(Span(text[begin:end], begin, end))
        owners.append(len(spans) - 1)
    return spans, owners
