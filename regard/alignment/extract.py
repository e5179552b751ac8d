"""Links from attention weights, between tokens that are separated by spaces, exactly as they were given.

A model has pieces of tidied text. The weight of a target token on a source token is the sum over the source token's
pieces, averaged over the target token's pieces. The rest of a row, up to 1, is the weight of the end token.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from regard.alignment.head_selection import HeadSelection
from regard.alignment.links import Links
from regard.alignment.tokens import tokens
from regard.look.trace import Matrix, Side, Trace
from regard.text.normal import tidy

Method = Literal["argmax", "threshold", "mutual"]
METHODS: tuple[Method, ...] = get_args(Method)
DEFAULT_THRESHOLD = 0.3
"""the default minimum weight of `threshold`. In the geometric mean of two directions, a token that is aligned to ten
others is above it: each of them attends to it with weight 1, and it attends to each with 1/10, so the mean is √0.1"""


def token_weights(trace: Trace, source_line: str, target_line: str, selection: HeadSelection | None = None) -> Matrix:
    """Return the weights of a trace between tokens, [target tokens, source tokens], without the end tokens."""
    rows, columns = _members(trace.target, target_line, "target"), _members(trace.source, source_line, "source")
    means = rows / np.maximum(rows.sum(0), 1)
    return np.asarray(means.T @ (selection or HeadSelection()).weights(trace) @ columns, np.float32)


def _members(side: Side, line: str, name: str) -> Matrix:
    """Return a matrix [pieces, tokens] with 1 where a piece belongs to a token."""
    plain = list(map(tidy, tokens(line)))
    nonempty = [number for number, token in enumerate(plain) if token]
    if " ".join(filter(None, plain)) != side.text:
        raise ValueError(f"{name}: expected a trace of {line!r}, got one of {side.text!r}")
    starts = np.cumsum([0, *(len(plain[number]) + 1 for number in nonempty)])[:-1]
    table = np.zeros((len(side.pieces), len(plain)), np.float32)
    for row, piece in enumerate(side.pieces[:-1] if side.ended else side.pieces):
        table[row, nonempty[int(np.searchsorted(starts, piece.start, side="right")) - 1]] = 1
    return table


def combine(forward: Matrix, backward: Matrix) -> Matrix:
    """Return the geometric mean of both directions, [target tokens, source tokens].

    It is high where both tokens attend to each other. `backward` are the weights of the model from target to source,
    [source tokens, target tokens].
    """
    if forward.shape != backward.T.shape:
        raise ValueError(f"backward: expected weights of shape {forward.T.shape}, got {backward.shape}")
    return np.asarray(np.sqrt(forward * backward.T), np.float32)


def links_of(weights: Matrix, method: Method = "argmax", min_weight: float | None = None, end: bool = True) -> Links:
    """Return the links of weights [target tokens, source tokens].

    - argmax: each target token is linked to the source token with the largest weight, unless that of the end token is
      larger.
    - threshold: every pair with a weight of at least `min_weight`, by default 0.3, is linked.
    - mutual: pairs in which each token has the other's largest weight are linked.

    For argmax and mutual, `min_weight` is by default 0. A pair with weight 0 is never linked. `end` must be False for
    weights whose rows do not imply the weight of the end token, such as those of `combine`.
    """
    if method not in METHODS:
        raise ValueError(f"method: expected one of {', '.join(METHODS)}, got {method!r}")
    if not weights.size:
        return frozenset()
    if min_weight is None:
        min_weight = DEFAULT_THRESHOLD if method == "threshold" else 0.0
    linked = (weights >= min_weight) & (weights > 0)
    if method != "threshold":
        best = np.zeros_like(linked)
        best[np.arange(len(weights)), weights.argmax(1)] = True
        linked &= best
    if method == "argmax" and end:
        linked &= weights >= 1 - weights.sum(1, keepdims=True)
    if method == "mutual":
        best = np.zeros_like(linked)
        best[weights.argmax(0), np.arange(weights.shape[1])] = True
        linked &= best
    return frozenset((int(source), int(target)) for target, source in zip(*np.nonzero(linked), strict=True))
