"""A corpus of sentence pairs as word ids, in groups of similar lengths, with the word pairs that occur in it.

Only word pairs that occur together in some sentence pair can be linked, so a translation table is an array over these P
word pairs. Each sentence pair has I · J cells, which contain the index of their word pair; all work of an aligner is
gathering from tables to cells and summing from cells to tables. Equal sentence pairs are stored once, with a count.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
TokenPair = tuple[Sequence[str], Sequence[str]]  # the words of the source and of the target

MAX_SQUARES = 1 << 18  # B · (the longer length + 1)² of a group: its arrays fit into a cache, its products on one core
MAX_KEYS = 1 << 22  # the number of cells that are numbered at once
LENGTH_STEPS = 8  # lengths are rounded up to one of so many lengths until the double


@dataclass(frozen=True)
class Group:
    """B sentence pairs with at most I source and J target words each, padded to I and J."""

    numbers: Ints  # [B]: the indices of the pairs in the corpus
    counts: Floats  # [B]: how often each occurs in the corpus
    source: Ints  # [I, B]: word ids; the padding is V, the number of distinct source words
    target: Ints  # [J, B]: word ids; the padding is W, the number of distinct target words
    source_lengths: Ints  # [B]
    target_lengths: Ints  # [B]
    cells: slice  # the J · I · B cells of the group in the corpus

    @property
    def shape(self) -> tuple[int, int, int]:
        """(J, I, B)"""
        return len(self.target), *self.source.shape  # type: ignore[return-value]


@dataclass(frozen=True)
class WordPairs:
    """The P pairs of a source word and a target word that occur together, sorted, and how often each word occurs."""

    sources: Sequence[str]  # the V distinct source words; a word id is an index here
    targets: Sequence[str]  # the W distinct target words
    source_counts: Floats  # [V]
    target_counts: Floats  # [W]
    source_of: Ints  # [P]: the source word of each word pair
    target_of: Ints  # [P]: the target word of each word pair


@dataclass(frozen=True)
class TokenizedCorpus(WordPairs):
    """Sentence pairs as word ids."""

    groups: Sequence[Group]
    cells: Ints  # [all cells]: the index of each cell's word pair; the padding is P
    first: Ints  # [pairs]: for each pair of the corpus, the number of the first one that equals it


class _Ids(dict[str, int]):
    """The ids of words, in the order in which they are first looked up."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number

    def encode(self, words: Iterable[str]) -> bytes:
        """Return the ids of the words as int32."""
        return array("i", map(self.__getitem__, words)).tobytes()


def corpus_of(pairs: Iterable[TokenPair]) -> TokenizedCorpus:
    """Return the corpus of the pairs of token lists; pairs with an empty side are in no group."""
    sources, targets = _Ids(), _Ids()
    numbers: dict[tuple[bytes, bytes], int] = {}
    first = array("q")
    for number, (source, target) in enumerate(pairs):
        if source and target:
            first.append(numbers.setdefault((sources.encode(source), targets.encode(target)), number))
        else:
            first.append(number)
    firsts = np.array(first, np.int64)
    repeats = np.bincount(firsts, minlength=1).astype(np.float32)
    numbering, groups, begin = _Numbering(), [], 0
    for rows in _batches(numbers):
        group = _group(rows, repeats, (len(sources), len(targets)), begin)
        numbering.add(_keys(group, len(sources), len(targets)))
        groups.append(group)
        begin = group.cells.stop
    cells, distinct = numbering.finish(len(sources) * len(targets))
    source_of, target_of = np.divmod(distinct, max(len(targets), 1))
    return TokenizedCorpus(
        list(sources),
        list(targets),
        _frequencies(((group.source, group.counts) for group in groups), len(sources)),
        _frequencies(((group.target, group.counts) for group in groups), len(targets)),
        source_of.astype(np.int32),
        target_of.astype(np.int32),
        groups,
        cells,
        firsts,
    )


Row = tuple[int, bytes, bytes]  # the number of a pair, and the ids of its source and target words


def _batches(numbers: dict[tuple[bytes, bytes], int]) -> Iterator[list[Row]]:
    """Yield the pairs in batches of similar lengths."""
    sizes: dict[tuple[int, int], list[Row]] = {}
    for (source, target), number in numbers.items():
        size = _rounded(len(source) // 4), _rounded(len(target) // 4)
        sizes.setdefault(size, []).append((number, source, target))
    for size, rows in sorted(sizes.items()):
        count = max(1, MAX_SQUARES // (max(size) + 1) ** 2)
        yield from (rows[begin : begin + count] for begin in range(0, len(rows), count))


def _rounded(length: int) -> int:
    """Return the length, rounded up so that few lengths remain: their sentences are processed together."""
    step = max(1, 1 << max(0, length.bit_length() - LENGTH_STEPS.bit_length()))
    return -(-length // step) * step


def _group(rows: Sequence[Row], repeats: Floats, padding: tuple[int, int], begin: int) -> Group:
    numbers = np.array([number for number, _, _ in rows])
    source, source_lengths = _padded([row[1] for row in rows], padding[0])
    target, target_lengths = _padded([row[2] for row in rows], padding[1])
    cells = slice(begin, begin + len(target) * source.size)
    return Group(numbers, repeats[numbers], source, target, source_lengths, target_lengths, cells)


def _padded(rows: Sequence[bytes], padding: int) -> tuple[Ints, Ints]:
    """Return the ids [words, rows], padded, and the lengths [rows]."""
    lengths = np.array([len(row) // 4 for row in rows])
    table = np.full((len(rows), lengths.max()), padding, np.int32)
    table[np.arange(lengths.max()) < lengths[:, None]] = np.frombuffer(b"".join(rows), np.int32)
    return np.ascontiguousarray(table.T), lengths


def _keys(group: Group, sources: int, targets: int) -> Ints:
    """Return [cells]: the key of each cell's word pair; the padding has the largest one."""
    keys = group.source[None].astype(np.int64) * targets + group.target[:, None]
    padded = (group.source == sources)[None] | (group.target == targets)[:, None]
    if padded.any():
        keys[padded] = sources * targets
    return keys.ravel()


class _Numbering:
    """Replaces keys by their indices among all distinct keys, which are sorted; the memory is that of the result."""

    def __init__(self) -> None:
        self._keys: list[Ints] = []
        self._parts: list[tuple[Ints, Ints]] = []  # the distinct keys of some cells, and for each cell its index there

    def add(self, keys: Ints) -> None:
        self._keys.append(keys)
        if sum(map(len, self._keys)) >= MAX_KEYS:
            self._reduce()

    def _reduce(self) -> None:
        keys = torch.from_numpy(np.concatenate([np.empty(0, np.int64), *self._keys]))
        distinct, inverse = torch.unique(keys, return_inverse=True)
        self._keys = []
        self._parts.append((distinct.numpy(), inverse.to(torch.int32).numpy()))

    def finish(self, padding: int) -> tuple[Ints, Ints]:
        """Return the index of each key, and the distinct keys without the padding, whose index is their number."""
        self._reduce()
        distinct = np.unique(np.concatenate([part for part, _ in self._parts]))
        cells = np.empty(sum(len(inverse) for _, inverse in self._parts), np.int32)
        begin = 0
        for part, inverse in self._parts:
            end = begin + len(inverse)
            np.take(np.searchsorted(distinct, part).astype(np.int32), inverse, out=cells[begin:end])
            begin = end
        return cells, distinct[: np.searchsorted(distinct, padding)]


def _frequencies(parts: Iterable[tuple[Ints, Floats]], size: int) -> Floats:
    """Return [size]: how often each word occurs in the parts, which are word ids [words, B] and counts [B]."""
    totals = torch.zeros(size + 1, dtype=torch.float64)
    for words, counts in parts:
        amounts = np.broadcast_to(counts, words.shape).astype(np.float64).ravel()
        totals.index_add_(0, torch.from_numpy(words.ravel()), torch.from_numpy(amounts))
    return np.asarray(totals.numpy()[:size])


def sums(ids: Ints, amounts: Floats, size: int) -> Floats:
    """Return [size]: the sum of the amounts of each id."""
    return np.asarray(np.bincount(ids, amounts, size), np.float64)
