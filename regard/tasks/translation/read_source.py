"""A source as a model reads it: with the terms of a glossary shown beside its words, if the model was trained so.

Traces have the text without them. The attention to a term that is shown belongs to the last piece of its source words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.look.trace import Matrix, Side
from regard.search.force_decode import ForcedDecoding
from regard.search.hypothesis import Hypothesis
from regard.text.glossary import Term
from regard.text.shown_terms import MAX_FORMS, annotation
from regard.text.vocabulary import Vocabulary

MAX_SHOWN_TOKENS = 400  # of a source; terms that would exceed it are not shown


@dataclass(frozen=True)
class ReadSource:
    """A source side, and the tokens that the model reads of it."""

    side: Side  # as traces show it
    tokens: Sequence[int]
    owners: Sequence[int]  # for each token, the piece of the side that it stands for, or beside which it is shown
    terms: Sequence[Term] = ()  # of a glossary, in the text

    @classmethod
    def of(cls, side: Side, terms: Sequence[Term] = (), vocabulary: Vocabulary | None = None) -> ReadSource:
        """Return a side as the model reads it. `terms` of its text are shown if the vocabulary has their marks."""
        owners = range(len(side.pieces))
        if not terms or vocabulary is None or not vocabulary.has_term_marks:
            return cls(side, side.tokens, owners, terms)
        shown: dict[int, list[int]] = {}  # after which pieces, and what
        for term in terms:
            # Encoded after a letter, since a text begins with the mark of a word.
            encoded = vocabulary.encode("a" + annotation(term.forms[:MAX_FORMS]))[len(vocabulary.encode("a")) :]
            pieces = _pieces(side, term)
            if pieces and sum(map(len, shown.values())) + len(encoded) <= MAX_SHOWN_TOKENS:
                shown.setdefault(pieces[-1], []).extend(encoded)
        tokens = [token for piece in owners for token in (side.tokens[piece], *shown.get(piece, []))]
        return cls(side, tokens, [piece for piece in owners for _ in range(1 + len(shown.get(piece, [])))], terms)

    def positions(self, term: Term) -> tuple[int, ...]:
        """Return the positions of a term's tokens, those that show it too."""
        pieces = set(_pieces(self.side, term))
        return tuple(position for position, owner in enumerate(self.owners) if owner in pieces)

    def hypothesis(self, given: Hypothesis) -> Hypothesis:
        """Return a hypothesis with its attention to the pieces of the side."""
        return replace(given, weights=self._merged(given.weights))

    def decoding(self, given: ForcedDecoding) -> ForcedDecoding:
        """Return a forced decoding with the attention to, and of, the pieces of the side."""
        between = dict(given.self_attention)
        if "encoder" in between:
            first = np.searchsorted(self.owners, np.arange(len(self.side.pieces)))
            between["encoder"] = self._merged(between["encoder"])[..., first, :]
        return replace(given, weights=self._merged(given.weights), self_attention=between)

    def _merged(self, weights: Matrix) -> Matrix:
        """Return weights [..., tokens], summed over the tokens of each piece of the side [..., pieces]."""
        if len(self.owners) == len(self.side.pieces):
            return weights
        return np.add.reduceat(weights, np.searchsorted(self.owners, np.arange(len(self.side.pieces))), axis=-1)


def _pieces(side: Side, term: Term) -> list[int]:
    """Return the pieces of a term in its source."""
    return [place for place, piece in enumerate(side.pieces) if piece.start < term.end and piece.end > term.start]
