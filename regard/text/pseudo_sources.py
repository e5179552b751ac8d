"""Made-up sources, in whose translations by a model shows what it has learned before (pseudorehearsal, Robins 1995).

They are sentences of new sources in which words are replaced by words of the vocabulary, which was learned from the old
sources: some at random, and all those that are typical of the new ones, because there the old model is no authority.
The subwords of a vocabulary are in the order of their frequency, nearly. So Zipf's law says how often to expect a word:

    expected(w) = words of all sources / (rank(w) · log V),    typical(w): it occurs TYPICAL times as often or more
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import regex

from regard.text.vocabulary import WORD_BEGINS, Vocabulary

WORD = regex.compile(r"[\p{L}\p{M}\p{N}\u200c\u200d'’]+")
REPLACED = 0.4  # the probability that a word is replaced
TYPICAL, MIN_COUNT = 30.0, 5  # a typical word occurs so many times as often as expected, and so often at least
COMMON = 10  # words are drawn by 1 / (rank + COMMON)


def pseudo_sources(sources: Sequence[str], vocabulary: Vocabulary, count: int, seed: int) -> list[str]:
    """Return `count` made-up sources or fewer: those that came out twice, or unchanged, are left out."""
    words = vocabulary_words(vocabulary)
    if len(words) < 2 or not sources:
        return []
    typical, rng = typical_words(sources, words), np.random.default_rng([seed, 3])
    odds = 1 / (np.arange(len(words)) + COMMON)
    odds /= odds.sum()

    def replaced(match: regex.Match[str]) -> str:
        word = match[0]
        return words[rng.choice(len(words), p=odds)] if rng.random() < REPLACED or word in typical else word

    made = [WORD.sub(replaced, sources[number % len(sources)]) for number in range(count)]
    known = set(sources)
    return [source for source in dict.fromkeys(made) if source not in known]


def vocabulary_words(vocabulary: Vocabulary) -> list[str]:
    """Return the words, or beginnings of words, that are one token each, the most frequent ones first."""
    tokens = sorted(vocabulary.tokens, key=lambda token: vocabulary.tokens[token])
    names = tokens if vocabulary.words else [token[1:] for token in tokens if token.startswith(WORD_BEGINS)]
    return [name for name in names if WORD.fullmatch(name)]


def typical_words(sources: Sequence[str], words: Sequence[str]) -> set[str]:
    """Return the words that occur in the sources much more often than their rank in the vocabulary says."""
    counts = Counter(word for source in sources for word in WORD.findall(source))
    ranks = {word: rank for rank, word in enumerate(words, 1)}
    scale = counts.total() / math.log(len(words))
    return {
        word
        for word, count in counts.items()
        if count >= MIN_COUNT and count >= TYPICAL * scale / ranks.get(word, len(words))
    }
