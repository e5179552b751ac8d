"""What each head of a model does in one trace: how widely it attends, where to, and how well it aligns words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from regard.alignment.error_rate import alignment_error
from regard.alignment.extract import links_of
from regard.alignment.links import Gold
from regard.look.trace import AttentionWeights, Matrix, Trace, by_words
from regard.look.words import Span
from regard.text.boundaries import is_punctuation

HeadKind = Literal[
    "itself",
    "previous word",
    "next word",
    "first word",
    "end token",
    "punctuation",
    "in order",
    "one word",
    "broad",
    "mixed",
]
HEAD_KINDS: tuple[HeadKind, ...] = get_args(HeadKind)
MIN_SHARE = 0.5  # of the weight that must follow a kind for a head to be of it
BROAD = 0.8  # entropy, of the largest possible one, from which a head attends to everything


@dataclass(frozen=True)
class HeadReport:
    """The summary of one head of one attention, between words."""

    attention: str
    layer: int
    head: int
    entropy: float  # bits, the mean over the words that attend
    kind: HeadKind
    share: float  # of the weight that follows the kind
    aer: float | None = None  # the alignment error rate of its links, if gold links are known; cross-attention only


def head_report(trace: Trace, gold: Gold | None = None) -> list[HeadReport]:
    """Return the report of every head of a trace. `gold`: links between its words, those of the source first."""
    return [report for each in trace.attentions for report in _of_attention(trace, each, gold)]


def _of_attention(trace: Trace, given: AttentionWeights, gold: Gold | None) -> list[HeadReport]:
    rows, columns = trace.sides(given.name)
    weights = by_words(given.weights, rows, columns)  # [layers, heads, row words, column words]
    with_text = [place for place, word in enumerate(rows.words) if word.text]
    reports = []
    for layer, head in np.ndindex(*weights.shape[:2]):
        own = weights[layer, head][with_text]
        entropy = _entropy(own)
        kind, share = _kind(own, columns.words, rows is columns, entropy)
        known = gold is not None and given.name == "cross" and len(own) > 0
        real = own[:, :-1] if columns.ended else own
        aer = alignment_error(links_of(real), gold) if known and gold is not None else None
        reports.append(HeadReport(given.name, layer, head, entropy, kind, share, aer))
    return reports


def _entropy(weights: Matrix) -> float:
    """Return the mean entropy of the rows in bits."""
    if not len(weights):
        return 0.0
    logs = np.log2(np.where(weights > 0, weights, 1))
    return float(abs((weights * logs).sum(1).mean()))


def _kind(weights: Matrix, columns: Sequence[Span], to_itself: bool, entropy: float) -> tuple[HeadKind, float]:
    """Return the kind that most of the weight follows, and how much of it does."""
    count, width = weights.shape
    if not count or not width:
        return "mixed", 0.0
    places, across = np.arange(count), np.arange(width)
    marks = np.array([bool(word.text) and all(map(is_punctuation, word.text)) for word in columns])
    ends = np.array([not word.text for word in columns])
    expected = places[:, None] * (width - 1) / max(count - 1, 1)
    masks: dict[HeadKind, Matrix] = {"end token": ends[None], "punctuation": marks[None]}
    if to_itself:
        for name, offset in (("itself", 0), ("previous word", -1), ("next word", 1)):
            masks[name] = across[None] == places[:, None] + offset  # type: ignore[index]
    else:
        masks["in order"] = np.abs(across[None] - expected) < 1
    masks["first word"] = across[None] == 0
    shares = {name: float((weights * mask).sum(1).mean()) for name, mask in masks.items()}
    best = max(shares, key=lambda name: shares[name])
    widest = entropy / np.log2(width) if width > 1 else 0.0
    if widest >= BROAD:
        return "broad", float(widest)
    if shares[best] >= MIN_SHARE:
        return best, shares[best]
    largest = float(weights.max(1).mean())
    return ("one word", largest) if largest >= MIN_SHARE else ("mixed", shares[best])
