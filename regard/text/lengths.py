"""Limits on the length of training lines, the part of a corpus within them, and the cutting of a longer text.

A single line as long as a book would determine the memory and time of a whole training run. The limit is generous and
taken from the data: several times the length of nearly all lines, and never so short that ordinary sentences exceed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.text.pairs import Corpus, Pair
from regard.text.vocabulary import Piece

Counted = tuple[Pair, int]  # a pair and the number of tokens of its longer side
MIN_CHARACTER_LIMIT, MIN_TOKEN_LIMIT = 1_000, 400  # lower bounds of limits taken from the data
QUANTILE, FACTOR = 0.95, 6  # a limit is this factor times this quantile of the lengths
MAX_CHARACTERS, MAX_TOKENS = "training.max_characters", "training.max_tokens"  # the recipe keys that set the limits


def limit_from(lengths: Sequence[int], minimum: int) -> int:
    """Return the length beyond which lines are skipped, at least `minimum`. A single long line never raises it."""
    ordered = sorted(lengths)
    return max(minimum, FACTOR * ordered[int(QUANTILE * (len(ordered) - 1))]) if ordered else minimum


def character_limit(pairs: Sequence[Pair]) -> int:
    """Return the limit in characters for a corpus of these pairs."""
    return limit_from([characters(pair) for pair in pairs], MIN_CHARACTER_LIMIT)


def characters(pair: Pair) -> int:
    """Return the length of the longer side, in characters."""
    return max(len(pair.source), len(pair.target))


def within_characters(corpus: Corpus, limit: int) -> Corpus:
    """Return the corpus with longer lines moved to the skipped ones."""
    within = [pair for pair in corpus.pairs if characters(pair) <= limit]
    if len(within) == len(corpus.pairs):
        return corpus
    reason = f"longer than {limit:,} characters ({MAX_CHARACTERS})"
    if not within:
        raise ValueError(f"{corpus.name}: no pair left: all are {reason}; expected a higher limit")
    skipped = [pair.line for pair in corpus.pairs if characters(pair) > limit]
    return replace(corpus, pairs=within, skipped=corpus.skipped | {reason: skipped})


@dataclass(frozen=True)
class TokenLimit:
    """The training and dev pairs within a limit of tokens; for dev it is at least what its own lengths give."""

    limit: int  # the limit of the training part
    train: list[int]  # the indices of the training pairs within the limit
    dev: list[int]
    skipped: list[str]  # for each part, a sentence about the pairs beyond the limit

    @classmethod
    def of(cls, train: Sequence[Counted], dev: Sequence[Counted], limit: int | None) -> TokenLimit:
        """Select the pairs within `limit` tokens; None: a limit taken from the data."""
        limit = limit or limit_from([count for _, count in train], MIN_TOKEN_LIMIT)
        longest = max(limit, limit_from([count for _, count in dev], MIN_TOKEN_LIMIT))
        skipped: list[str] = []
        return cls(limit, _within(train, limit, "", skipped), _within(dev, longest, "dev: ", skipped), skipped)


def _within(pairs: Sequence[Counted], limit: int, name: str, skipped: list[str]) -> list[int]:
    """Return the indices of the pairs within the limit, and add a sentence about the others to `skipped`."""
    indices = [index for index, (_, count) in enumerate(pairs) if count <= limit]
    reason = f"longer than {limit:,} tokens ({MAX_TOKENS})"
    if not indices:
        raise ValueError(f"{name}no pair left: all are {reason}; expected a higher limit")
    if len(indices) < len(pairs):
        lines = [pair.line for pair, count in pairs if count > limit]
        skipped += [name + line for line in Corpus([], 0, {reason: lines}).report()]
    return indices


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
