"""Traces made by hand, and a translator that looks where it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from regard.look.trace import AttentionWeights, Side, Trace
from regard.look.words import Span
from regard.text.normal import tidy


def side(text: str, pieces: Sequence[str] | None = None) -> Side:
    """Of a tidied text; its pieces are its words, if none are given, and the end token."""
    spans, place = [], 0
    for piece in text.split() if pieces is None else pieces:
        start = text.index(piece, place)
        place = start + len(piece)
        spans.append(Span(piece, start, place))
    return Side(text, [*spans, Span("", len(text), len(text))])


def trace(source: Side, target: Side, weights: object) -> Trace:
    return Trace(source, target, [AttentionWeights("cross", np.array(weights, np.float32)[None, None])])


class Told:
    """Looks at the source words that a rule tells, and at nothing else but the end token."""

    def __init__(self, rule: Callable[[str, str], float]) -> None:
        self._rule = rule
        self.asked: list[tuple[str, str]] = []

    def force_decode(self, sources: Sequence[str], targets: Sequence[str]) -> list[Trace]:
        assert len(sources) == len(targets)
        self.asked += zip(sources, targets, strict=True)
        return [self._trace(side(tidy(one)), side(tidy(other))) for one, other in zip(sources, targets, strict=True)]

    def _trace(self, source: Side, target: Side) -> Trace:
        weights = [[self._rule(one.text, other.text) for one in source.pieces[:-1]] for other in target.pieces]
        return trace(source, target, [[*row, 1 - sum(row)] for row in weights])


def same_word(one: str, other: str) -> float:
    """0.6 for a word that is the same in lower case"""
    return 0.6 * (bool(one) and one.lower() == other.lower())
