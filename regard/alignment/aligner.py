"""From models and sentence pairs to links: forced decoding, in one direction or both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Protocol, get_args

import numpy as np

from regard.alignment.extract import METHODS, Method, combine, links_of, token_weights
from regard.alignment.links import Links
from regard.alignment.symmetrize import SYMMETRIZATIONS, Symmetrization, symmetrize
from regard.alignment.tokens import tokens
from regard.look.trace import Matrix, Trace

Soft = Literal["soft"]
SOFT: Soft = get_args(Soft)[0]
TOGETHER = 256
"""pairs that are aligned together"""
Sides = tuple[str, str]
"""source and target, as given"""


class Forcing(Protocol):
    """What a translator can do that is needed here."""

    def forced(self, sources: Sequence[str], targets: Sequence[str]) -> list[Trace]: ...


@dataclass(frozen=True)
class Way:
    """From weights to links."""

    method: Method | None = None
    """None: threshold for soft, else argmax"""
    symmetrization: Symmetrization | Soft = "grow-diag-final-and"
    """of two directions; soft: links from the geometric mean of their weights"""
    least: float | None = None
    later: bool = False
    """read the attention one step later"""
    end: bool = True
    """of argmax: a token that looks at the end token most is not linked"""

    def __post_init__(self) -> None:
        known = (*SYMMETRIZATIONS, SOFT)
        if self.symmetrization not in known:
            raise ValueError(f"symmetrization: expected one of {', '.join(known)}, got {self.symmetrization!r}")
        if self.method is not None and self.method not in METHODS:
            raise ValueError(f"method: expected one of {', '.join(METHODS)}, got {self.method!r}")


def align(
    pairs: Sequence[Sides], forward: Forcing, backward: Forcing | None = None, way: Way | None = None
) -> Iterator[Links]:
    """The links of each pair, source first. A pair with an empty side has none."""
    way = way or Way()
    first = weights(pairs, forward, way.later)
    if backward is None:
        yield from (links_of(each, way.method or "argmax", way.least, way.end) for each in first)
        return
    second = weights([(target, source) for source, target in pairs], backward, way.later)
    for both in zip(first, second, strict=True):
        yield link(*both, way)


def weights(pairs: Sequence[Sides], translator: Forcing, later: bool = False) -> Iterator[Matrix]:
    """[target tokens, source tokens] of each pair."""
    numbered = iter(enumerate(pairs, 1))
    while some := list(islice(numbered, TOGETHER)):
        full = [sides for _, sides in some if all(map(tokens, sides))]
        traces = iter(translator.forced([source for source, _ in full], [target for _, target in full]))
        for number, sides in some:
            sizes = [len(tokens(side)) for side in sides]
            if not all(sizes):
                yield np.zeros((sizes[1], sizes[0]), np.float32)
                continue
            try:
                found = token_weights(next(traces), *sides, later)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            yield found


def link(forward: Matrix, backward: Matrix, way: Way) -> Links:
    """Of one pair, from the weights of both directions."""
    if way.symmetrization == "soft":
        return links_of(combine(forward, backward), way.method or "threshold", way.least, end=False)
    method = way.method or "argmax"
    first, turned = (links_of(each, method, way.least, way.end) for each in (forward, backward))
    return symmetrize(first, ((source, target) for target, source in turned), way.symmetrization)
