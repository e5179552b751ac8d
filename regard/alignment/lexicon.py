"""Which words translate which, learned from sentence pairs alone: IBM Model 1 (Brown et al. 1993), in both directions.

A target word f_j is said by one source word e_i, or by none (null); every place is as likely as any other:

    p(f_j | e) = p₀ · t(f_j | null) + (1 − p₀) / I · Σ_i t(f_j | e_i)

Expectation maximization finds the table t. Only word pairs that stand in some sentence pair together have an entry, so
a table is one number for each of P such pairs. The cells of all sentence pairs, I · J each, hold the number of their
word pair; all work is gathering from tables to cells and summing from cells to tables.

Rare words are seen too few times for that. They are helped by a prior, counts that nobody saw: of how alike two words
are spelt (numbers, names, loans), and of what their beginnings translate to (the forms of a word mostly share one).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]

NULL = 0.03
"""p₀: how often a word is said by none"""
LEAST = 1e-9
"""no entry of a table is less"""
UNSEEN = 30.0
"""counts that each word keeps for what it was never seen with: else a rare word would explain all that is around it"""
BEGINNING = 4
"""letters that the forms of a word mostly share"""
ALIKE = 0.5
"""words that share a smaller part do so by chance"""
LETTERS = 12
"""of a word that are compared"""
TOGETHER = 1 << 18
"""cells that are worked on at once"""


@dataclass(frozen=True)
class Group:
    """B sentence pairs with I source and J target words each, so that nothing is padded."""

    numbers: Ints
    """[B] of the pairs in the corpus"""
    source: Ints
    """[B, I] words"""
    target: Ints
    """[B, J] words"""
    cells: slice
    """B · I · J of the corpus"""

    @property
    def shape(self) -> tuple[int, int, int]:
        return (*self.source.shape, self.target.shape[1])


@dataclass(frozen=True)
class Corpus:
    sources: list[str]
    """distinct words; a word is its place here"""
    targets: list[str]
    groups: list[Group]
    cells: Ints
    """[all cells]: the word pair of each"""
    source_of: Ints
    """[P]: the source word of each word pair"""
    target_of: Ints


@dataclass(frozen=True)
class Lexicon:
    """What is said by what. P is as in the corpus, V and W are its numbers of source and target words."""

    forward: Floats
    """[P]: t(target word | source word)"""
    backward: Floats
    """[P]: t(source word | target word)"""
    target_null: Floats
    """[W]: t(target word | null)"""
    source_null: Floats
    """[V]"""


@dataclass(frozen=True)
class Prior:
    """Counts [P] that are added to those that were seen."""

    forward: Floats
    backward: Floats


@dataclass
class Counts:
    """How often a word was said by another, or by none, as far as the model believes."""

    forward: Floats
    """[all cells]: that the source word said the target word"""
    backward: Floats
    """[all cells]; the same array where both directions must agree"""
    target_null: Floats
    source_null: Floats
    likelihood: float = 0.0
    """the logarithm, of both directions together"""

    @classmethod
    def of(cls, corpus: Corpus, agreement: bool) -> Counts:
        cells = np.empty(len(corpus.cells), np.float32)
        other = cells if agreement else np.empty_like(cells)
        return cls(cells, other, np.zeros(len(corpus.targets)), np.zeros(len(corpus.sources)))

    def add(self, group: Group, forward: Floats, backward: Floats) -> None:
        """What each direction believes, [B, I, J]. Agreement (Liang et al. 2006): only what both believe counts."""
        self.target_null += _sums(group.target, np.maximum(0, 1 - forward.sum(1)), len(self.target_null))
        self.source_null += _sums(group.source, np.maximum(0, 1 - backward.sum(2)), len(self.source_null))
        if self.forward is self.backward:
            self.forward[group.cells] = (forward * backward).ravel()
        else:
            self.forward[group.cells], self.backward[group.cells] = forward.ravel(), backward.ravel()


def corpus_of(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Corpus:
    """Pairs with an empty side are left out."""
    sources: dict[str, int] = {}
    targets: dict[str, int] = {}
    sizes: dict[tuple[int, int], list[int]] = {}
    for number, (source, target) in enumerate(pairs):
        if not (source and target):
            continue
        sizes.setdefault((len(source), len(target)), []).append(number)
        for words, known in ((source, sources), (target, targets)):
            for word in words:
                known.setdefault(word, len(known))
    groups, keys, begin = [], [np.empty(0, np.int64)], 0
    for numbers in _parts(sizes):
        ours = np.array([[sources[word] for word in pairs[number][0]] for number in numbers])
        theirs = np.array([[targets[word] for word in pairs[number][1]] for number in numbers])
        keys.append((ours[:, :, None] * len(targets) + theirs[:, None, :]).ravel())
        groups.append(Group(np.array(numbers), ours, theirs, slice(begin, begin + len(keys[-1]))))
        begin += len(keys[-1])
    return Corpus(list(sources), list(targets), groups, *_numbered(np.concatenate(keys), len(targets)))


def _parts(sizes: dict[tuple[int, int], list[int]]) -> Iterator[list[int]]:
    for (ours, theirs), numbers in sorted(sizes.items()):
        count = max(1, TOGETHER // (ours * theirs))
        yield from (numbers[first : first + count] for first in range(0, len(numbers), count))


def _numbered(keys: Ints, targets: int) -> tuple[Ints, Ints, Ints]:
    """The distinct keys numbered: which each is, and the source and target words of them all."""
    known, which = torch.unique(torch.from_numpy(keys), return_inverse=True)
    ours, theirs = np.divmod(known.numpy(), max(targets, 1))
    return which.numpy().astype(np.int32), ours.astype(np.int32), theirs.astype(np.int32)


def model_one(corpus: Corpus, iterations: int, prior: Prior | None = None) -> Lexicon:
    """Trained with agreement, from tables that know only which words stand together."""
    lexicon = uninformed(corpus)
    for _ in range(iterations):
        lexicon = estimated(corpus, model_one_counts(corpus, lexicon), prior)
    return lexicon


def uninformed(corpus: Corpus) -> Lexicon:
    """Each word says all that it stands with alike."""
    forward, backward = (1 / np.bincount(words)[words] for words in (corpus.source_of, corpus.target_of))
    sources, targets = frequencies(corpus)
    return Lexicon(forward.astype(np.float32), backward.astype(np.float32), _null(targets), _null(sources))


def frequencies(corpus: Corpus) -> tuple[Floats, Floats]:
    """[V] and [W]: how often each word stands in the corpus."""
    sources, targets = np.zeros(len(corpus.sources)), np.zeros(len(corpus.targets))
    for group in corpus.groups:
        sources += np.bincount(group.source.ravel(), minlength=len(sources))
        targets += np.bincount(group.target.ravel(), minlength=len(targets))
    return sources, targets


def model_one_counts(corpus: Corpus, lexicon: Lexicon, agreement: bool = True) -> Counts:
    """The E step."""
    counts = Counts.of(corpus, agreement)
    for group in corpus.groups:
        _, ours, theirs = group.shape
        cells = corpus.cells[group.cells].reshape(group.shape)
        forward = lexicon.forward[cells] * np.float32((1 - NULL) / ours)
        backward = lexicon.backward[cells] * np.float32((1 - NULL) / theirs)
        of_target = forward.sum(1, keepdims=True) + NULL * lexicon.target_null[group.target][:, None, :]
        of_source = backward.sum(2, keepdims=True) + NULL * lexicon.source_null[group.source][:, :, None]
        counts.likelihood += float(np.log(of_target).sum(dtype=np.float64) + np.log(of_source).sum(dtype=np.float64))
        counts.add(group, forward / of_target, backward / of_source)
    return counts


def estimated(corpus: Corpus, counts: Counts, prior: Prior | None = None, unseen: float = UNSEEN) -> Lexicon:
    """The M step: t(f | e) = (c(e, f) + a(e, f)) / (Σ_f' (c(e, f') + a(e, f')) + unseen), with the prior's counts a."""
    size = len(corpus.source_of)
    forward = _sums(corpus.cells, counts.forward, size)
    same = counts.backward is counts.forward
    backward = forward if same else _sums(corpus.cells, counts.backward, size)
    if prior is not None:
        forward, backward = forward + prior.forward, backward + prior.backward
    return Lexicon(
        _shares(forward, corpus.source_of, unseen),
        _shares(backward, corpus.target_of, unseen),
        _null(counts.target_null),
        _null(counts.source_null),
    )


def _shares(counts: Floats, given: Ints, unseen: float) -> Floats:
    """[P]: of each word pair among all with the same given word."""
    whole = np.bincount(given, weights=counts) + unseen
    return np.asarray(np.maximum(counts / np.maximum(whole, LEAST)[given], LEAST), np.float32)


def _null(counts: Floats) -> Floats:
    """One more for each word: null may say any."""
    return np.asarray((counts + 1) / (counts + 1).sum(), np.float32)


def _sums(words: Ints, amounts: Floats, size: int) -> Floats:
    """[size]: the amounts of each word together."""
    return np.asarray(np.bincount(words.ravel(), amounts.ravel(), size), np.float64)


def likeness(corpus: Corpus) -> Floats:
    """[P]: how much of the longer word the beginning is that both share, accents aside; 0 where less than half."""
    ours, theirs = _letters(corpus.sources), _letters(corpus.targets)
    found = np.zeros(len(corpus.source_of))
    for first in range(0, len(found), TOGETHER):
        some = slice(first, first + TOGETHER)
        one, two = ours[corpus.source_of[some]], theirs[corpus.target_of[some]]
        shared = np.logical_and.accumulate((one == two) & (one > 0), axis=1).sum(1)
        share = shared / np.maximum(((one > 0) | (two > 0)).sum(1), 1)
        found[some] = np.where(share >= ALIKE, share, 0)
    return found


def _letters(words: Sequence[str]) -> Ints:
    """[words, LETTERS]: code points without accents, 0 behind the end."""
    table = np.zeros((len(words), LETTERS), np.uint32)
    for row, word in zip(table, words, strict=True):
        plain = "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
        codes = np.frombuffer(plain[:LETTERS].encode("utf-32-le", "surrogatepass"), "<u4")
        row[: len(codes)] = codes
    return table


@dataclass(frozen=True)
class Shortened:
    """A corpus of the beginnings of words."""

    corpus: Corpus
    sources: Ints
    """[V]: the beginning of each source word of the whole corpus"""
    targets: Ints
    """[W]"""
    pairs: Ints
    """[P]: the pair of beginnings of each word pair of the whole corpus"""


def shortened(corpus: Corpus) -> Shortened:
    known, ours = _cut(corpus.sources)
    others, theirs = _cut(corpus.targets)
    keys = ours[corpus.source_of] * len(others) + theirs[corpus.target_of]
    pairs, source_of, target_of = _numbered(keys, len(others))
    groups = [replace(group, source=ours[group.source], target=theirs[group.target]) for group in corpus.groups]
    return Shortened(Corpus(known, others, groups, pairs[corpus.cells], source_of, target_of), ours, theirs, pairs)


def _cut(words: Sequence[str]) -> tuple[list[str], Ints]:
    """The distinct beginnings, and which each word has. A number is nothing without its end."""
    known: dict[str, int] = {}
    cut = (word if any(map(str.isdigit, word)) else word[:BEGINNING] for word in words)
    which = np.array([known.setdefault(word, len(known)) for word in cut], np.int64)
    return list(known), which


def inherited(corpus: Corpus, short: Shortened, lexicon: Lexicon) -> Lexicon:
    """For whole words from a lexicon of beginnings f' and e': t(f | e) = t(f' | e') · p(f | f')."""
    sources, targets = (
        count / np.bincount(which, weights=count)[which]
        for count, which in zip(frequencies(corpus), (short.sources, short.targets), strict=True)
    )
    tables = (
        lexicon.forward[short.pairs] * targets[corpus.target_of],
        lexicon.backward[short.pairs] * sources[corpus.source_of],
        lexicon.target_null[short.targets] * targets,
        lexicon.source_null[short.sources] * sources,
    )
    return Lexicon(*(np.maximum(table, LEAST).astype(np.float32) for table in tables))
