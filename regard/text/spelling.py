"""Character n-grams of words: all runs of 3 to 5 letters of a word, as ids (Bojanowski et al. 2017).

A word is marked at both ends, so that prefixes and suffixes differ from the same letters inside a word. A word that was
not seen in training still shares its stem and its endings with words that were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

BEGINS, ENDS = "\x02", "\x03"
LENGTHS = (3, 4, 5)
MIN_WORDS_PER_NGRAM = 2  # n-grams of fewer words are left out: they add nothing to the word itself


class Spelling:
    """Maps words to the ids of their n-grams, counted from 1; 0 is padding."""

    def __init__(self, words: Iterable[str]) -> None:
        """`words` are the distinct words of the training texts."""
        counts = Counter(ngram for word in words for ngram in character_ngrams(word))
        frequent = sorted(ngram for ngram, count in counts.items() if count >= MIN_WORDS_PER_NGRAM)
        self._ids = {ngram: number for number, ngram in enumerate(frequent, 1)}
        self._cache: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        """Return the number of ids, including padding."""
        return len(self._ids) + 1

    def __call__(self, word: str) -> tuple[int, ...]:
        ids = self._cache.get(word)
        if ids is None:
            ids = tuple(sorted(self._ids[ngram] for ngram in character_ngrams(word) if ngram in self._ids))
            self._cache[word] = ids
        return ids


def character_ngrams(word: str) -> set[str]:
    """Return the n-grams of a word, marked at both ends."""
    marked = f"{BEGINS}{word}{ENDS}"
    return {marked[start : start + size] for size in LENGTHS for start in range(len(marked) - size + 1)}
