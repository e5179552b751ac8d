"""Anchors: the words of training pairs that translate each other, where placeholders can stand on both sides.

A source word e_i and a target word f_j of a pair are an anchor if each is the other's likeliest partner by Model 1 with
agreement (alignment/lexicon.py), with a posterior of at least MIN_POSTERIOR, or if they are spelt the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.alignment.corpus import corpus_of
from regard.alignment.lexicon import model_one, model_one_posteriors
from regard.text.pairs import Pair
from regard.text.placeholders import Anchor, equal_words, word_spans

ITERATIONS = 5
MIN_POSTERIOR = 0.3
MAX_CELLS = 4_000_000  # cells of the corpus that is read: the products of the sentences' lengths


def find_anchors(pairs: Sequence[Pair], seed: int) -> list[list[Anchor]]:
    """Return the anchors of each pair. Of a large corpus only some pairs, drawn at random, are aligned."""
    spans = [(word_spans(pair.source), word_spans(pair.target)) for pair in pairs]
    anchors = [equal_words(pair.source, pair.target) for pair in pairs]
    rows = within_cells([len(source) * len(target) for source, target in spans], seed)
    corpus = corpus_of(_tokens(pairs[row], *spans[row]) for row in rows)
    if not corpus.groups:
        return anchors
    links: dict[int, list[tuple[int, int]]] = {}
    for group, forward, backward, _ in model_one_posteriors(corpus, model_one(corpus, ITERATIONS)):
        table = forward * backward  # [J, I, B]
        best = (table == table.max(0, keepdims=True)) & (table == table.max(1, keepdims=True))
        for target, source, number in zip(*np.nonzero(best & (table >= MIN_POSTERIOR)), strict=True):
            links.setdefault(int(group.numbers[number]), []).append((int(source), int(target)))
    for row, first in zip(rows, corpus.first.tolist(), strict=True):
        for source, target in sorted(links.get(first, [])):
            _add(anchors[row], Anchor(spans[row][0][source], spans[row][1][target]))
    return anchors


def _add(anchors: list[Anchor], new: Anchor) -> None:
    """Add an anchor unless one of its words belongs to another already."""
    if all(new.source != each.source and new.target != each.target for each in anchors):
        anchors.append(new)


def _tokens(pair: Pair, *spans: Sequence[tuple[int, int]]) -> tuple[list[str], list[str]]:
    source, target = (
        [text[start:end].lower() for start, end in words]
        for text, words in zip((pair.source, pair.target), spans, strict=True)
    )
    return source, target


def within_cells(sizes: Sequence[int], seed: int) -> list[int]:
    """Return the rows of pairs, drawn at random, that together have at most MAX_CELLS cells, in their order."""
    order = np.random.default_rng(seed).permutation(len(sizes))
    fitting = order[np.cumsum(np.asarray(sizes)[order]) <= MAX_CELLS]
    return [int(row) for row in np.sort(fitting)]
