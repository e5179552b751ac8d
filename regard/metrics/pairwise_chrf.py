"""chrF++ of every pair of texts, as sacrebleu's `CHRF(word_order=2).sentence_score` gives it, but all at once.

The t-th occurrence of an n-gram in a text is one feature, so that Σ min(counts) of two texts is the number of features
they share: a product of binary matrices [texts, features], one for each order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Matrix = np.ndarray[Any, np.dtype[np.float64]]

CHARACTERS, WORDS, BETA = 6, 2, 2  # the orders of n-grams, and the weight of recall


def pairwise_chrf(texts: Sequence[str]) -> Matrix:
    """Return the chrF++ [n, n] of each of n texts (rows) against each as its reference (columns), in percent."""
    from sacrebleu.metrics.chrf import CHRF

    split = CHRF(word_order=WORDS)._remove_punctuation  # the words of the metric
    without_blanks = ["".join(text.split()) for text in texts]
    words = [split(text) for text in texts]
    orders = [[_n_grams(text, n) for text in without_blanks] for n in range(1, CHARACTERS + 1)]
    orders += [[[" ".join(gram) for gram in _n_grams(each, n)] for each in words] for n in range(1, WORDS + 1)]
    shape = (len(texts), len(texts))
    precision, recall, effective = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for grams in orders:
        matches = _matches(grams)
        counts = np.array([len(each) for each in grams], np.float64)
        both = np.outer(counts > 0, counts > 0)  # orders for which one side is too short do not count
        precision += np.where(both, matches / np.maximum(counts, 1)[:, None], 0)
        recall += np.where(both, matches / np.maximum(counts, 1), 0)
        effective += both
    precision, recall = precision / np.maximum(effective, 1), recall / np.maximum(effective, 1)
    weighted = BETA**2 * precision + recall
    return 100 * (1 + BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1)


def _n_grams(items: Sequence[str], n: int) -> list[Any]:
    return [items[start : start + n] for start in range(len(items) - n + 1)]


def _matches(grams: Sequence[Sequence[str]]) -> Matrix:
    """Return the number of n-grams that each two of n texts share, [n, n], for the n-grams of each."""
    columns: dict[tuple[str, int], int] = {}
    rows: list[int] = []
    places: list[int] = []
    for row, own in enumerate(grams):
        seen: dict[str, int] = {}
        for gram in own:
            count = seen[gram] = seen.get(gram, 0) + 1
            places.append(columns.setdefault((gram, count), len(columns)))
        rows += [row] * len(own)
    # Most features of different texts occur once: they only match their own text, and the product is smaller without.
    shared = np.bincount(np.array(places, np.int64), minlength=len(columns)) > 1
    column = np.cumsum(shared) - 1
    pairs = np.array([rows, places], np.int64)
    pairs = pairs[:, shared[pairs[1]]]
    features = np.zeros((len(grams), int(shared.sum())), np.float32)
    features[pairs[0], column[pairs[1]]] = 1
    matches = (features @ features.T).astype(np.float64)
    np.fill_diagonal(matches, [len(own) for own in grams])
    return matches
