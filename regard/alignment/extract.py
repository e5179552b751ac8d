"""Links from what a model looked at: between the tokens that blanks separate, exactly as they were given.

A model has pieces of tidied text. A target token looks at a source token with the sum over the pieces of the latter,
averaged over its own. What is missing to 1 in a row went to the end token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from regard.alignment.links import Links
from regard.alignment.reading import Reading
from regard.alignment.tokens import tokens
from regard.look.trace import Matrix, Side, Span, Trace
from regard.text.normal import tidy

Method = Literal["argmax", "threshold", "mutual"]
METHODS: tuple[Method, ...] = get_args(Method)
LEAST = 0.3
"""the weight that `threshold` asks for. In the mean of two directions, a token that belongs to as many as ten is above
it: looked at by each with 1, and looking at each with 1/10, √0.1"""


def token_weights(trace: Trace, source_line: str, target_line: str, reading: Reading = Reading()) -> Matrix:  # noqa: B008, a frozen value
    """[target tokens, source tokens], without the end tokens."""
    rows, columns = _members(trace.target, target_line, "target"), _members(trace.source, source_line, "source")
    means = rows / np.maximum(rows.sum(0), 1)
    return np.asarray(means.T @ reading.weights(trace) @ columns, np.float32)


def _members(side: Side, line: str, name: str) -> Matrix:
    """[pieces, tokens]: 1 where a piece belongs to a token."""
    starts, text = [], ""
    for token in tokens(line):
        plain = tidy(token)
        text += " " * bool(text and plain) + plain
        starts.append(len(text) - len(plain))
    if text != side.text:
        raise ValueError(f"{name}: expected a trace of {line!r}, got one of {side.text!r}")
    table = np.zeros((len(side.pieces), len(starts)), np.float32)
    full = [number for number, token in enumerate(tokens(line)) if tidy(token)]
    places = [starts[number] for number in full]
    for row, piece in enumerate(_without_end(side.pieces, len(text))):
        table[row, full[int(np.searchsorted(places, piece.start, side="right")) - 1]] = 1
    return table


def _without_end(pieces: Sequence[Span], size: int) -> Sequence[Span]:
    ended = pieces and pieces[-1].start == pieces[-1].end == size
    return pieces[:-1] if ended else pieces


def combine(forward: Matrix, backward: Matrix) -> Matrix:
    """The geometric mean of both directions, [target tokens, source tokens]: high where both look at each other.

    `backward` is of the model from target to source, [source tokens, target tokens].
    """
    if forward.shape != backward.T.shape:
        raise ValueError(f"backward: expected weights of shape {forward.T.shape}, got {backward.shape}")
    return np.asarray(np.sqrt(forward * backward.T), np.float32)


def links_of(weights: Matrix, method: Method = "argmax", least: float | None = None, end: bool = True) -> Links:
    """Links from weights [target tokens, source tokens].

    - argmax: each target token with the source token it looks at most, unless the end token is looked at more.
    - threshold: every pair of at least `least`, by default 0.3.
    - mutual: pairs in which each is the other's largest weight.

    For argmax and mutual, `least` is by default 0. A pair without any weight is no link. `end` is False for weights
    whose rows do not say how much went to the end token, as those of `combine`.
    """
    if method not in METHODS:
        raise ValueError(f"method: expected one of {', '.join(METHODS)}, got {method!r}")
    if not weights.size:
        return frozenset()
    kept = (weights >= (LEAST if method == "threshold" and least is None else least or 0.0)) & (weights > 0)
    if method != "threshold":
        best = np.zeros_like(kept)
        best[np.arange(len(weights)), weights.argmax(1)] = True
        kept &= best
    if method == "argmax" and end:
        kept &= weights >= 1 - weights.sum(1, keepdims=True)
    if method == "mutual":
        best = np.zeros_like(kept)
        best[weights.argmax(0), np.arange(weights.shape[1])] = True
        kept &= best
    return frozenset((int(source), int(target)) for target, source in zip(*np.nonzero(kept), strict=True))
