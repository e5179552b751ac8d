"""From models and sentence pairs to links: forced decoding, in one direction or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Protocol, get_args

import numpy as np

from regard.alignment.extract import METHODS, Method, combine, links_of, token_weights
from regard.alignment.hmm import statistical_links
from regard.alignment.links import Links
from regard.alignment.reading import Reading, readings
from regard.alignment.symmetrize import SYMMETRIZATIONS, Symmetrization, symmetrize
from regard.alignment.tokens import tokens
from regard.look.trace import Matrix, Trace
from regard.text.normal import match_key
from regard.text.pairs import Corpus

Soft = Literal["soft"]
SOFT: Soft = get_args(Soft)[0]
TOGETHER = 256
"""pairs that are aligned together; on the first of them heads are tried"""
LONGEST = 2_000
"""characters; a pair with a longer side gets no links: memory and time grow with the product of both lengths"""
COUNTED = 20000
"""pairs from which statistics are taken"""
Tell = Callable[[str], None]
Sides = tuple[str, str]
"""source and target, as given"""


class Forcing(Protocol):
    """What a translator can do that is needed here."""

    def force_decode(self, sources: Sequence[str], targets: Sequence[str]) -> list[Trace]: ...


@dataclass(frozen=True)
class Way:
    """From weights to links."""

    method: Method | None = None
    """None: threshold for soft, else argmax"""
    symmetrization: Symmetrization | Soft = "grow-diag-final-and"
    """of two directions; soft: links from the geometric mean of their weights"""
    least: float | None = None
    reading: Reading | None = None
    """of each model; None: of one with several heads, those that align these pairs best"""
    end: bool = True
    """of argmax: a token that looks at the end token most is not linked"""

    def __post_init__(self) -> None:
        known = (*SYMMETRIZATIONS, SOFT)
        if self.symmetrization not in known:
            raise ValueError(f"symmetrization: expected one of {', '.join(known)}, got {self.symmetrization!r}")
        if self.method is not None and self.method not in METHODS:
            raise ValueError(f"method: expected one of {', '.join(METHODS)}, got {self.method!r}")


def align(
    pairs: Sequence[Sides],
    forward: Forcing,
    backward: Forcing | None = None,
    way: Way | None = None,
    tell: Tell | None = None,
) -> Iterator[Links]:
    """The links of each pair, source first. A pair with an empty side has none, nor has one with a side of more than
    2,000 characters. `tell` hears of these, and of the heads chosen."""
    way = way or Way()
    pairs = _without_long(pairs, tell)
    first = weights(pairs, forward, way.reading, tell)
    if backward is None:
        yield from (links_of(each, way.method or "argmax", way.least, way.end) for each in first)
        return
    second = weights([(target, source) for source, target in pairs], backward, way.reading, tell)
    for both in zip(first, second, strict=True):
        yield link(*both, way)


def _without_long(pairs: Sequence[Sides], tell: Tell | None) -> Sequence[Sides]:
    """Return the pairs with over-long ones emptied."""
    long = {number for number, sides in enumerate(pairs, 1) if max(map(len, sides)) > LONGEST}
    if not long:
        return pairs
    if tell is not None:
        reason = f"longer than {LONGEST:,} characters, no links there"
        tell(*Corpus([], 0, {reason: sorted(long)}).report())
    return [("", "") if number in long else sides for number, sides in enumerate(pairs, 1)]


def weights(
    pairs: Sequence[Sides], translator: Forcing, reading: Reading | None = None, tell: Tell | None = None
) -> Iterator[Matrix]:
    """[target tokens, source tokens] of each pair."""
    numbered = iter(enumerate(pairs, 1))
    while some := list(islice(numbered, TOGETHER)):
        full = [sides for _, sides in some if all(map(tokens, sides))]
        told = translator.force_decode([source for source, _ in full], [target for _, target in full])
        if reading is None and told:
            reading = best_reading(told, full, pairs, tell)
        traces = iter(told)
        for number, sides in some:
            sizes = [len(tokens(side)) for side in sides]
            if not all(sizes):
                yield np.zeros((sizes[1], sizes[0]), np.float32)
                continue
            try:
                found = token_weights(next(traces), *sides, reading or Reading())
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            yield found


def best_reading(
    traces: Sequence[Trace], some: Sequence[Sides], pairs: Sequence[Sides], tell: Tell | None = None
) -> Reading:
    """What is read of a model so that its links come nearest to those that statistics find in the pairs.

    `traces` are of `some`, the first of the pairs that can be aligned. Of a model with one attention there is nothing
    to choose: that, at the step that says a word.
    """
    if max(each.weights.shape[0] * each.weights.shape[1] for each in traces[0].attentions) == 1:
        return Reading()
    counted = [sides for sides in pairs if all(map(tokens, sides))][:COUNTED]
    silver = statistical_links([(lowered(source), lowered(target)) for source, target in counted])[: len(some)]

    def agreement(reading: Reading) -> float:
        """F1 of its links against those of statistics"""
        found = [links_of(token_weights(trace, *sides, reading)) for trace, sides in zip(traces, some, strict=True)]
        shared = sum(len(one & other) for one, other in zip(found, silver, strict=True))
        return 2 * shared / max(1, sum(map(len, found)) + sum(map(len, silver)))

    best = max(readings(traces), key=agreement)
    if tell is not None:
        tell(f"read: {best}, which agrees best with statistics of these pairs (F1 {agreement(best):.2f})")
    return best


def lowered(line: str) -> list[str]:
    """Tokens without case, as statistics count them."""
    return [match_key(token) for token in tokens(line)]


def link(forward: Matrix, backward: Matrix, way: Way) -> Links:
    """Of one pair, from the weights of both directions."""
    if way.symmetrization == "soft":
        return links_of(combine(forward, backward), way.method or "threshold", way.least, end=False)
    method = way.method or "argmax"
    first, turned = (links_of(each, method, way.least, way.end) for each in (forward, backward))
    return symmetrize(first, ((source, target) for target, source in turned), way.symmetrization)
