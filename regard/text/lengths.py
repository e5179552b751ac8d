"""Limits on how long a line may be to be trained on, and what is left of a corpus within them.

One line of a book's length would decide how much memory and time a whole training takes. The limit is generous, and
taken from the data: several times as long as nearly all lines are, and never so short that ordinary sentences meet it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.text.pairs import Corpus, Pair

Counted = tuple[Pair, int]
"""a pair and how many tokens its longer side has"""
LEAST_CHARACTERS, LEAST_TOKENS = 1_000, 400
"""no limit that is taken from the data is lower"""
QUANTILE, TIMES = 0.95, 6
"""nearly all lines are as long as this quantile; a limit is so many times as long"""
MAX_CHARACTERS, MAX_TOKENS = "training.max_characters", "training.max_tokens"
"""the keys of a recipe that set the limits"""


def limit_from(lengths: Sequence[int], least: int) -> int:
    """Return the length beyond which lines are skipped. A single long line never raises it."""
    ordered = sorted(lengths)
    return max(least, TIMES * ordered[int(QUANTILE * (len(ordered) - 1))]) if ordered else least


def character_limit(pairs: Sequence[Pair]) -> int:
    return limit_from([characters(pair) for pair in pairs], LEAST_CHARACTERS)


def characters(pair: Pair) -> int:
    """Return the length of the longer side."""
    return max(len(pair.source), len(pair.target))


def within_characters(corpus: Corpus, limit: int) -> Corpus:
    """Return the corpus with longer lines counted among those that were skipped."""
    kept = [pair for pair in corpus.pairs if characters(pair) <= limit]
    if len(kept) == len(corpus.pairs):
        return corpus
    if not kept:
        raise ValueError(
            f"{corpus.name}: no pair left: all are longer than {limit:,} characters ({MAX_CHARACTERS}); "
            "expected a higher limit"
        )
    reason = f"longer than {limit:,} characters ({MAX_CHARACTERS})"
    skipped = [pair.line for pair in corpus.pairs if characters(pair) > limit]
    return replace(corpus, pairs=kept, skipped=corpus.skipped | {reason: skipped})


@dataclass(frozen=True)
class TokenLimit:
    """The pairs of a training part and of a dev part that are not too long, once it is known how many tokens they have.

    A dev part may have pairs as long as its own lengths allow.
    """

    limit: int
    """of the training part"""
    train: list[int]
    """the places of the pairs that are left"""
    dev: list[int]
    skipped: list[str]
    """a sentence about those that are not, of each part"""

    @classmethod
    def of(cls, train: Sequence[Counted], dev: Sequence[Counted], limit: int | None) -> TokenLimit:
        """`limit` None: from the data."""
        limit = limit or limit_from([count for _, count in train], LEAST_TOKENS)
        longest = max(limit, limit_from([count for _, count in dev], LEAST_TOKENS))
        skipped: list[str] = []
        return cls(limit, _places(train, limit, "", skipped), _places(dev, longest, "dev: ", skipped), skipped)


def _places(pairs: Sequence[Counted], limit: int, name: str, skipped: list[str]) -> list[int]:
    """Return the places of those within the limit, and add a sentence about the others to `skipped`."""
    places = [place for place, (_, count) in enumerate(pairs) if count <= limit]
    reason = f"longer than {limit:,} tokens ({MAX_TOKENS})"
    if not places:
        raise ValueError(f"{name}no pair left: all are {reason}; expected a higher limit")
    if len(places) < len(pairs):
        lines = [pair.line for pair, count in pairs if count > limit]
        skipped += [name + line for line in Corpus([], 0, {reason: lines}).report()]
    return places
