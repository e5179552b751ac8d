"""The training pairs of a large corpus, as a sequence that reads memory-mapped files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from regard.corpora.arrays import Ints, Ragged, scratch
from regard.corpora.blocks import LINES_SHOWN, skipped_report
from regard.corpora.cache import Cache
from regard.corpora.encoding import token_dtype
from regard.corpora.examples import StoredPart
from regard.corpora.order import LengthOrder
from regard.corpora.permutation import mixed
from regard.corpora.selection import LONGEST, Selection, limit_from_counts
from regard.corpora.texts import Advance
from regard.corpora.tokens import StoredTokens
from regard.text.lengths import MAX_TOKENS, MIN_TOKEN_LIMIT
from regard.text.pairs import Pair
from regard.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class StoredPairs(Sequence[Pair]):
    """The training pairs of one or several sources of data, in their order."""

    selection: Selection
    cache: Cache
    advance: Advance
    say: Callable[[str], None]

    @cached_property
    def _rows(self) -> Ints:
        """the row of each training pair, counted over all sources"""
        rows = scratch(self.cache.folder, len(self), np.int64)
        place = 0
        for piece in self.selection.rows():
            rows[place : place + len(piece)] = piece
            place += len(piece)
        return rows

    @cached_property
    def _count(self) -> int:
        return sum(len(piece) for piece in self.selection.rows())

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Pair: ...

    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...

    def __getitem__(self, index: int | slice) -> Pair | list[Pair]:
        if isinstance(index, slice):
            return self.pairs(self._rows[index])
        return next(self.selection.pairs(self._rows[[index]]))

    def __iter__(self) -> Iterator[Pair]:
        for piece in self.selection.rows():
            yield from self.selection.pairs(piece)

    def sample(self, size: int) -> Ints:
        """Return the rows of about `size` pairs, chosen by a hash of their numbers; all, if there are no more."""
        if len(self) <= size:
            return self._rows
        threshold = np.uint64(int(size / len(self) * 2**64))
        return np.concatenate([rows[mixed(rows.astype(np.uint64)) < threshold] for rows in self.selection.rows()])

    def pairs(self, rows: Ints) -> list[Pair]:
        """Return pairs by their rows."""
        return list(self.selection.pairs(rows))


@dataclass(frozen=True)
class ListedTexts:
    """Texts in memory, beside those in files."""

    pairs: Sequence[Pair]

    def __len__(self) -> int:
        return len(self.pairs)

    def pair(self, row: int) -> Pair:
        """Return the pair of a row."""
        return self.pairs[row]


def listed_part(pairs: Sequence[Pair], source: Vocabulary, target: Vocabulary) -> StoredPart:
    """Return pairs in memory, with their tokens."""
    sides = (source, [pair.source for pair in pairs]), (target, [pair.target for pair in pairs])
    tokens = [Ragged.of(each.encode_all(texts), token_dtype(len(each))) for each, texts in sides]
    return StoredPart(ListedTexts(pairs), StoredTokens(*tokens))


@dataclass(frozen=True)
class TokenizedPairs:
    """The training pairs with their tokens, of which those within a limit are used."""

    train: StoredPairs
    tokens: Sequence[StoredTokens]  # of each source of data
    given_limit: int | None  # the limit that the recipe sets

    def lengths(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of tokens of source and target of rows, counted over all sources of data."""
        return part_lengths(rows, self.train.selection.offsets, self.tokens)

    @cached_property
    def limit(self) -> int:
        """the maximum number of tokens of either side: the recipe's, or one taken from the data"""
        if self.given_limit:
            return self.given_limit
        counts = np.zeros(LONGEST + 1, np.int64)
        for rows in self.train.selection.rows():
            longer = np.maximum(*self.lengths(rows))
            counts += np.bincount(np.minimum(longer, LONGEST), minlength=LONGEST + 1)
        return limit_from_counts(counts, MIN_TOKEN_LIMIT)

    def rows(self) -> Iterator[Ints]:
        """Yield the rows within the limit, in pieces."""
        for rows in self.train.selection.rows():
            yield rows[np.maximum(*self.lengths(rows)) <= self.limit]

    def skipped(self) -> list[str]:
        """Return a sentence about the pairs beyond the limit; raise a ValueError if there are no others."""
        count, lines = 0, []  # type: int, list[int]
        for rows in self.train.selection.rows():
            long = rows[np.maximum(*self.lengths(rows)) > self.limit]
            count += len(long)
            lines += [pair.line for pair in self.train.pairs(long[: LINES_SHOWN - len(lines)])]
        reason = f"longer than {self.limit:,} tokens ({MAX_TOKENS})"
        if count == len(self.train):
            raise ValueError(f"no pair left: all are {reason}; expected a higher limit")
        return skipped_report({reason: [count, *lines]}) if count else []

    def longest_source(self) -> int:
        """Return the largest number of tokens of a source within the limit, the end token counted."""
        return 1 + max(int(self.lengths(rows)[0].max(initial=0)) for rows in self.rows())

    def order(self, listed: StoredPart) -> LengthOrder:
        """Return the order by length of the rows within the limit and of further pairs in memory."""
        offsets = np.append(self.train.selection.offsets, self.train.selection.offsets[-1] + len(listed.texts))
        tokens = [*self.tokens, listed.tokens]

        def pieces() -> Iterator[Ints]:
            yield from self.rows()
            yield np.arange(offsets[-2], offsets[-1])

        return LengthOrder.of(
            pieces,
            lambda rows: part_lengths(rows, offsets, tokens),
            offsets[1:],
            [*self.train.selection.weights, 1.0],
            self.train.cache.folder,
        )


def part_lengths(rows: Ints, offsets: Ints, tokens: Sequence[StoredTokens]) -> tuple[Ints, Ints]:
    """Return the lengths of source and target of rows, which are counted over all parts."""
    parts = np.searchsorted(offsets, rows, "right") - 1
    source, target = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for part in np.unique(parts).tolist():
        inside = parts == part
        source[inside], target[inside] = tokens[part].lengths(rows[inside] - offsets[part])
    return source, target
