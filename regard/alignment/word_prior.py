"""What rare words share with others: their spelling (numbers, names, loan words), and the prefix of their forms.

Both become pseudo-counts of the translation tables: from how similar two words are spelt, and from how their prefixes
are translated. A model of prefixes has tables of its own, in which all words with the same prefix share their entries.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.alignment.corpus import Floats, Ints, WordPairs, sums
from regard.alignment.lexicon import MIN_PROBABILITY, Lexicon, LinkCounts

PREFIX_LENGTH = 4  # the number of letters that the forms of a word mostly share
MIN_SIMILARITY = 0.5  # a lower similarity of spelling is taken for chance and set to 0
MAX_LETTERS = 12  # the number of letters of a word that are compared
BATCH_SIZE = 1 << 18  # the number of word pairs that are compared at once


def spelling_similarity(words: WordPairs) -> Floats:
    """Return [P]: the length of the common prefix, ignoring accents, over that of the longer word; 0 if under half."""
    source_letters, target_letters = _letters(words.sources), _letters(words.targets)
    similarity = np.zeros(len(words.source_of), np.float32)
    # Most word pairs differ in the first letter, which is compared first.
    candidates = np.flatnonzero(source_letters[words.source_of, 0] == target_letters[words.target_of, 0])
    for first in range(0, len(candidates), BATCH_SIZE):
        batch = candidates[first : first + BATCH_SIZE]
        one, two = source_letters[words.source_of[batch]], target_letters[words.target_of[batch]]
        shared = np.logical_and.accumulate((one == two) & (one > 0), axis=1).sum(1)
        fraction = shared / np.maximum(((one > 0) | (two > 0)).sum(1), 1)
        similarity[batch] = np.where(fraction >= MIN_SIMILARITY, fraction, 0)
    return similarity


def _letters(words: Sequence[str]) -> Ints:
    """Return [words, MAX_LETTERS]: code points without accents, padded with 0."""
    table = np.zeros((len(words), MAX_LETTERS), np.uint32)
    for row, word in zip(table, words, strict=True):
        plain = "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
        codes = np.frombuffer(plain[:MAX_LETTERS].encode("utf-32-le", "surrogatepass"), "<u4")
        row[: len(codes)] = codes
    return table


@dataclass(frozen=True)
class Prefixes:
    """The prefixes of the words of a corpus, and how words map to them."""

    words: WordPairs  # of prefixes
    sources: Ints  # [V]: the prefix of each source word of the corpus
    targets: Ints  # [W]: the prefix of each target word
    pairs: Ints  # [P]: the pair of prefixes of each word pair

    def expanded(self, lexicon: Lexicon) -> Lexicon:
        """Return the tables of words in which each has the entries of its prefix."""
        return Lexicon(
            lexicon.forward[self.pairs],
            lexicon.backward[self.pairs],
            lexicon.target_null[self.targets],
            lexicon.source_null[self.sources],
        )

    def tied(self, counts: LinkCounts) -> LinkCounts:
        """Return the counts of prefixes: the sums over their words."""
        forward = sums(self.pairs, counts.forward, len(self.words.source_of))
        same = counts.backward is counts.forward
        backward = forward if same else sums(self.pairs, counts.backward, len(self.words.source_of))
        target_null = sums(self.targets, counts.target_null, len(self.words.targets))
        source_null = sums(self.sources, counts.source_null, len(self.words.sources))
        return LinkCounts(forward, backward, target_null, source_null, counts.likelihood)


def prefixes_of(words: WordPairs) -> Prefixes:
    """Return the prefixes of the words of a corpus."""
    source_prefixes, sources = prefix_ids(words.sources)
    target_prefixes, targets = prefix_ids(words.targets)
    keys = sources[words.source_of] * len(target_prefixes) + targets[words.target_of]
    distinct, pairs = np.unique(keys, return_inverse=True)
    source_of, target_of = np.divmod(distinct, max(len(target_prefixes), 1))
    counts = (
        sums(sources, words.source_counts, len(source_prefixes)),
        sums(targets, words.target_counts, len(target_prefixes)),
    )
    tied = WordPairs(source_prefixes, target_prefixes, *counts, source_of.astype(np.int32), target_of.astype(np.int32))
    return Prefixes(tied, sources, targets, pairs.astype(np.int32))


def prefix_ids(words: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the distinct prefixes and the index of each word's prefix. Words with digits are not shortened."""
    ids: dict[str, int] = {}
    prefixes = (word if any(map(str.isdigit, word)) else word[:PREFIX_LENGTH] for word in words)
    indices = [ids.setdefault(word, len(ids)) for word in prefixes]
    return list(ids), np.array(indices, np.int64)


def lexicon_from_prefixes(words: WordPairs, prefixes: Prefixes, lexicon: Lexicon) -> Lexicon:
    """Return a lexicon of whole words from one of their prefixes f' and e': t(f | e) = t(f' | e') · p(f | f')."""
    sources = words.source_counts / prefixes.words.source_counts[prefixes.sources]
    targets = words.target_counts / prefixes.words.target_counts[prefixes.targets]
    expanded = prefixes.expanded(lexicon)
    tables = (
        expanded.forward * targets[words.target_of],
        expanded.backward * sources[words.source_of],
        expanded.target_null * targets,
        expanded.source_null * sources,
    )
    return Lexicon(*(np.maximum(table, MIN_PROBABILITY).astype(np.float32) for table in tables))
