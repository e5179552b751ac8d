"""Pairs of single words, from the training pairs, as further examples: who trains on sentences only writes sentences.

A source word e and a target word f make a pair if they are mostly linked with each other:

    c(e, f) ≥ MIN_COUNT,   c(e, f) / c(e) ≥ MIN_SHARE,   c(e, f) / c(f) ≥ MIN_SHARE,   both the largest of e and of f

c(e, f) is the expected number of links by Model 1 with agreement (alignment/lexicon.py), which takes about a second for
30,000 short sentences; of a large corpus only the shortest pairs are read, since these say most about single words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from regard.alignment.corpus import Floats, Ints, corpus_of
from regard.alignment.lexicon import model_one, model_one_counts
from regard.config.folder import Vocabularies
from regard.text.pairs import Pair
from regard.text.vocabulary import WORD_BEGINS, Vocabulary

ITERATIONS = 4
MAX_CELLS = 2_000_000  # cells of the corpus that is read: the products of the sentences' lengths
MIN_COUNT = 4.0
MIN_SHARE = 0.3


def word_pairs(pairs: Sequence[Pair], vocabularies: Vocabularies, limit: int) -> list[Pair]:
    """Return at most `limit` pairs of words that translate each other, the most frequent first."""
    if limit < 1:
        return []
    short = _shortest(pairs)
    sources = [_words(vocabularies.source, pair.source) for pair in short]
    targets = [_words(vocabularies.target, pair.target) for pair in short]
    spellings = usual_spellings(sources), usual_spellings(targets)
    corpus = corpus_of([(_keys(source), _keys(target)) for source, target in zip(sources, targets, strict=True)])
    if not len(corpus.cells):
        return []
    counts = model_one_counts(corpus, model_one(corpus, ITERATIONS)).forward  # [P]
    shares = [
        counts / corpus.source_counts[corpus.source_of],
        counts / corpus.target_counts[corpus.target_of],
    ]
    chosen = (counts >= MIN_COUNT) & _is_largest(shares[0], corpus.source_of) & _is_largest(shares[1], corpus.target_of)
    rows = np.flatnonzero(chosen & (shares[0] >= MIN_SHARE) & (shares[1] >= MIN_SHARE))
    rows = rows[np.argsort(-counts[rows], kind="stable")][:limit]
    return [
        Pair(
            spellings[0][corpus.sources[corpus.source_of[row]]], spellings[1][corpus.targets[corpus.target_of[row]]], 0
        )
        for row in rows.tolist()
    ]


def _shortest(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs in their order, without the longest if there are too many cells."""
    sizes = np.array([(pair.source.count(" ") + 1) * (pair.target.count(" ") + 1) for pair in pairs])
    order = np.argsort(sizes, kind="stable")
    fitting = order[np.cumsum(sizes[order]) <= MAX_CELLS]
    return [pairs[row] for row in np.sort(fitting).tolist()]


def _words(vocabulary: Vocabulary, text: str) -> list[str]:
    """Return the words of a text, without punctuation."""
    chunks = (chunk.replace(WORD_BEGINS, "") for chunk in vocabulary.chunks(text))
    return [chunk for chunk in chunks if any(map(str.isalnum, chunk))]


def _keys(words: Iterable[str]) -> list[str]:
    return [word.lower() for word in words]


def usual_spellings(texts: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the most frequent spelling of each word by its lower case; texts begin with a capital, so a spelling
    there counts only for words that occur nowhere else."""
    inside, first = Counter[str](), Counter[str]()
    for words in texts:
        first.update(words[:1])
        inside.update(words[1:])
    spellings: dict[str, str] = {}
    for word, _ in (*inside.most_common(), *first.most_common()):
        spellings.setdefault(word.lower(), word)
    return spellings


def _is_largest(shares: Floats, words: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return [P]: whether a word pair has the largest share among those of the same word."""
    largest = np.zeros(int(words.max(initial=-1)) + 1)
    np.maximum.at(largest, words, shares)
    return np.asarray(shares == largest[words])
