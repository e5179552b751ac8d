"""Word alignment of sentence pairs by forced decoding with a model of one direction or with models of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np

from regard.alignment.extract import METHODS, Method, combine, links_of, token_weights
from regard.alignment.head_selection import HeadSelection, head_selections
from regard.alignment.links import Links
from regard.alignment.rows import Notify, Sides, without_long
from regard.alignment.statistical import statistical_links
from regard.alignment.symmetrize import SYMMETRIZATIONS, Symmetrization, symmetrize
from regard.alignment.tokens import tokens
from regard.look.trace import Matrix, Trace
from regard.text.normal import match_key

Soft = Literal["soft"]
BATCH_SIZE = 256  # the number of pairs that are decoded together; the attention heads are chosen on the first batch
MAX_BATCH_WEIGHTS = 1 << 23  # of a batch: source characters times target characters
MAX_STATISTICS_PAIRS = 20000  # the number of pairs from which statistics are taken


class ForcedDecoder(Protocol):
    """A translator that can force-decode."""

    def force_decode(self, sources: Sequence[str], targets: Sequence[str]) -> list[Trace]: ...


@dataclass(frozen=True)
class AlignmentOptions:
    """Options of the step from attention weights to links."""

    method: Method | None = None
    """None: threshold if the symmetrization is soft, else argmax"""
    symmetrization: Symmetrization | Soft = "grow-diag-final-and"
    """how two directions are combined; soft: links from the geometric mean of their weights"""
    min_weight: float | None = None
    """the minimum weight of a link"""
    selection: HeadSelection | None = None
    """which attention weights are read; None: of a model with several heads, those that align these pairs best"""
    end: bool = True
    """for argmax: a token whose largest weight is on the end token gets no link"""

    def __post_init__(self) -> None:
        known = (*SYMMETRIZATIONS, *get_args(Soft))
        if self.symmetrization not in known:
            raise ValueError(f"symmetrization: expected one of {', '.join(known)}, got {self.symmetrization!r}")
        if self.method is not None and self.method not in METHODS:
            raise ValueError(f"method: expected one of {', '.join(METHODS)}, got {self.method!r}")


def align_by_attention(
    pairs: Sequence[Sides],
    forward: ForcedDecoder,
    backward: ForcedDecoder | None = None,
    options: AlignmentOptions | None = None,
    notify: Notify | None = None,
) -> Iterator[Links]:
    """Yield the links of each pair, source first.

    A pair with an empty side, or with a side of more than 2,000 characters, has none. `notify` is called with messages
    about pairs that are too long and about the attention heads that were chosen.
    """
    options = options or AlignmentOptions()
    pairs = without_long(pairs, notify)
    first = weights(pairs, forward, options.selection, notify)
    if backward is None:
        yield from (links_of(each, options.method or "argmax", options.min_weight, options.end) for each in first)
        return
    second = weights([(target, source) for source, target in pairs], backward, options.selection, notify)
    for both in zip(first, second, strict=True):
        yield link(*both, options)


def weights(
    pairs: Sequence[Sides],
    translator: ForcedDecoder,
    selection: HeadSelection | None = None,
    notify: Notify | None = None,
) -> Iterator[Matrix]:
    """Yield the attention weights [target tokens, source tokens] of each pair."""
    numbered = iter(enumerate(pairs, 1))
    while batch := _next_batch(numbered):
        nonempty = [sides for _, sides in batch if all(map(tokens, sides))]
        decoded = translator.force_decode([source for source, _ in nonempty], [target for _, target in nonempty])
        if selection is None and decoded:
            selection = best_selection(decoded, nonempty, pairs, notify)
        traces = iter(decoded)
        for number, sides in batch:
            sizes = [len(tokens(side)) for side in sides]
            if not all(sizes):
                yield np.zeros((sizes[1], sizes[0]), np.float32)
                continue
            try:
                matrix = token_weights(next(traces), *sides, selection)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            yield matrix


def _next_batch(pairs: Iterator[tuple[int, Sides]]) -> list[tuple[int, Sides]]:
    """Return the next pairs that are decoded together: fewer of them if they are long, as weights grow with the square
    of the length."""
    batch: list[tuple[int, Sides]] = []
    size = 0
    for number, sides in pairs:
        batch.append((number, sides))
        size += len(sides[0]) * len(sides[1])
        if len(batch) == BATCH_SIZE or size >= MAX_BATCH_WEIGHTS:
            break
    return batch


def best_selection(
    traces: Sequence[Trace], decoded: Sequence[Sides], pairs: Sequence[Sides], notify: Notify | None = None
) -> HeadSelection:
    """Return the choice of attention weights whose links agree best with statistical links of the pairs.

    `traces` are those of `decoded`, the first of the pairs that can be aligned. A model with a single attention head
    leaves nothing to choose: its weights at the step that predicts a token are read.
    """
    if max(each.weights.shape[0] * each.weights.shape[1] for each in traces[0].attentions) == 1:
        return HeadSelection()
    counted_pairs = [sides for sides in pairs if all(map(tokens, sides))][:MAX_STATISTICS_PAIRS]
    silver = statistical_links([(_words(source), _words(target)) for source, target in counted_pairs])[: len(decoded)]

    def agreement(selection: HeadSelection) -> float:
        """Return the F1 of the links of a head selection against the statistical ones."""
        links = [
            links_of(token_weights(trace, *sides, selection)) for trace, sides in zip(traces, decoded, strict=True)
        ]
        shared = sum(len(one & other) for one, other in zip(links, silver, strict=True))
        return 2 * shared / max(1, sum(map(len, links)) + sum(map(len, silver)))

    best = max(head_selections(traces), key=agreement)
    if notify is not None:
        notify(f"read: {best}, which agrees best with statistics of these pairs (F1 {agreement(best):.2f})")
    return best


def _words(line: str) -> list[str]:
    """Return the tokens in the form, without case, in which statistics count them."""
    return [match_key(token) for token in tokens(line)]


def link(forward: Matrix, backward: Matrix, options: AlignmentOptions) -> Links:
    """Return the links of one pair from the weights of both directions."""
    if options.symmetrization == "soft":
        return links_of(combine(forward, backward), options.method or "threshold", options.min_weight, end=False)
    method = options.method or "argmax"
    first, second = (links_of(each, method, options.min_weight, options.end) for each in (forward, backward))
    return symmetrize(first, ((source, target) for target, source in second), options.symmetrization)
