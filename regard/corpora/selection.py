"""Which rows of stored texts are for training, and which are dev: the rules of small corpora (tasks/text_data.py), by
hashes and histograms, so that memory is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.corpora.arrays import Ints, scratch, spans
from regard.corpora.blocks import LINES_SHOWN, skipped_report, source_rank
from regard.corpora.texts import Flags, Hashes, StoredTexts, drop_repeated
from regard.text.lengths import FACTOR, MAX_CHARACTERS, MIN_CHARACTER_LIMIT, QUANTILE
from regard.text.pairs import Pair
from regard.text.split import MAX_DEV_SOURCES, dev_size

LONGEST = 1 << 20  # longer texts count as this long where lengths are counted
ALL_DEV_SOURCES = 20 * MAX_DEV_SOURCES  # with so many sources, dev has its maximum size


@dataclass(frozen=True)
class Selection:
    """The training rows of several sources of data; those of the first come first."""

    texts: Sequence[StoredTexts]
    weights: Sequence[float]
    dropped: Sequence[Flags]  # for each source [N]: 1 for rows that are not for training
    dev: Sequence[Pair]
    leaked: int  # distinct sources of a dev part that was given which also occur in training
    max_characters: int
    reports: Sequence[str]  # sentences about skipped lines
    folder: Path  # for scratch files

    @cached_property
    def offsets(self) -> Ints:
        """[sources + 1]: the number of each source's first row, counted over all sources"""
        return np.cumsum([0, *map(len, self.texts)])

    def rows(self) -> Iterator[Ints]:
        """Yield the numbers of the training rows, counted over all sources, in pieces."""
        for offset, dropped in zip(self.offsets, self.dropped, strict=False):
            for span in spans(len(dropped)):
                yield np.flatnonzero(dropped[span] == 0) + (span.start + offset)

    def pairs(self, rows: Ints) -> Iterator[Pair]:
        """Yield pairs by their rows, counted over all sources."""
        parts = np.searchsorted(self.offsets, rows, "right") - 1
        within = rows - self.offsets[parts]
        for part, row in zip(parts.tolist(), within.tolist(), strict=True):
            yield self.texts[part].pair(row)


def select(
    texts: Sequence[StoredTexts],
    weights: Sequence[float],
    folder: Path,
    max_characters: int | None,
    dev: Sequence[Pair] | None,
) -> Selection:
    """Select the rows. Duplicates and over-long lines are dropped; without `dev`, a part of the first source is set
    aside, and pairs of the others with a source of it are dropped."""
    dropped = [scratch(folder, len(each), np.uint8) for each in texts]
    for flags, each in zip(dropped, texts, strict=True):
        flags[:] = each.repeated
    limit = max_characters or _character_limit(texts, dropped)
    reports = [report for each, flags in zip(texts, dropped, strict=True) for report in _skipped(each, flags, limit)]
    if all(bool(flags.all()) for flags in dropped):
        reason = f"longer than {limit:,} characters ({MAX_CHARACTERS})"
        raise ValueError(f"{texts[0].name}: no pair left: all are {reason}; expected a higher limit")
    leaked = 0
    if dev is None:
        ranks = _dev_ranks(texts[0].ranks, dropped[0])
        dev = _take_dev(texts[0], dropped[0], ranks)
        for each, flags in zip(texts[1:], dropped[1:], strict=True):
            _drop(each.ranks, flags, ranks)
    else:
        ranks = np.unique(np.array([int.from_bytes(source_rank(pair.source)) for pair in dev], np.uint64))
        leaked = _leaked(texts, dropped, ranks)
    if len(texts) > 1:
        first = sorted(range(len(texts)), key=lambda part: -weights[part])  # the largest weight counts
        drop_repeated([texts[part].keys for part in first], [dropped[part] for part in first])
    return Selection(texts, weights, dropped, dev, leaked, limit, reports, folder)


def limit_from_counts(counts: Ints, minimum: int) -> int:
    """Return `limit_from` of lengths that are given by their histogram."""
    total = int(counts.sum())
    place = int(QUANTILE * (total - 1))
    return max(minimum, FACTOR * int(np.searchsorted(np.cumsum(counts), place, "right"))) if total else minimum


def _character_limit(texts: Sequence[StoredTexts], dropped: Sequence[Flags]) -> int:
    counts = np.zeros(LONGEST + 1, np.int64)
    for each, flags in zip(texts, dropped, strict=True):
        for span in spans(len(each)):
            lengths = np.minimum(each.characters[span][flags[span] == 0], LONGEST)
            counts += np.bincount(lengths, minlength=LONGEST + 1)
    return limit_from_counts(counts, MIN_CHARACTER_LIMIT)


def _skipped(texts: StoredTexts, dropped: Flags, limit: int) -> list[str]:
    """Drop the lines beyond the limit, and return sentences about all lines of a source that were skipped."""
    skipped = dict(texts.skipped)
    repeated, long = _Noted(), _Noted()
    for span in spans(len(texts)):
        repeated.add(np.flatnonzero(dropped[span]) + span.start, texts)
        rows = np.flatnonzero((dropped[span] == 0) & (texts.characters[span] > limit)) + span.start
        dropped[rows] = 1
        long.add(rows, texts)
    reasons = {"exact duplicate": repeated, f"longer than {limit:,} characters ({MAX_CHARACTERS})": long}
    skipped |= {reason: [noted.count, *noted.lines] for reason, noted in reasons.items() if noted.count}
    return [f"{texts.name}: {line}" for line in skipped_report(skipped)]


@dataclass
class _Noted:
    """How many rows were skipped, and the first of their lines."""

    count: int = 0
    lines: list[int] = field(default_factory=list)

    def add(self, rows: Ints, texts: StoredTexts) -> None:
        self.count += len(rows)
        self.lines += texts.lines[rows[: LINES_SHOWN - len(self.lines)]].tolist()


def _dev_ranks(ranks: Hashes, dropped: Flags) -> Hashes:
    """Return the ranks of the sources that become dev: the lowest of all distinct ones."""
    distinct, lowest = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    for span in spans(len(ranks)):
        values = ranks[span][dropped[span] == 0]
        if len(distinct) < ALL_DEV_SOURCES:
            distinct = np.union1d(distinct, values)
        if len(lowest) == MAX_DEV_SOURCES:
            values = values[values < lowest[-1]]
        lowest = np.union1d(lowest, values)[:MAX_DEV_SOURCES]
    count = dev_size(len(distinct))
    if count == 0:
        raise ValueError(
            f"a dev part needs 5 distinct sources, {len(distinct)} came; add pairs, or give some with --dev"
        )
    return lowest[:count]


def _take_dev(texts: StoredTexts, dropped: Flags, ranks: Hashes) -> list[Pair]:
    """Return the pairs whose sources have these ranks, and drop them from training."""
    rows = _drop(texts.ranks, dropped, ranks)
    return [texts.pair(row) for row in rows]


def _drop(ranks: Hashes, dropped: Flags, chosen: Hashes) -> list[int]:
    """Drop the rows that have one of the chosen ranks, and return those that were not dropped before."""
    taken: list[int] = []
    for span in spans(len(ranks)):
        rows = np.flatnonzero((dropped[span] == 0) & is_among(ranks[span], chosen)) + span.start
        dropped[rows] = 1
        taken += rows.tolist()
    return taken


def is_among(values: Hashes, chosen: Hashes) -> NDArray[np.bool_]:
    """Return whether each value is one of those chosen, which are few and sorted; faster than `np.isin`."""
    if not len(chosen):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(chosen, values), len(chosen) - 1)
    return np.asarray(chosen[places] == values)


def _leaked(texts: Sequence[StoredTexts], dropped: Sequence[Flags], ranks: Hashes) -> int:
    """Return how many of the ranks occur in training."""
    leaked = np.zeros(0, np.uint64)
    for each, flags in zip(texts, dropped, strict=True):
        for span in spans(len(each)):
            values = each.ranks[span][flags[span] == 0]
            leaked = np.union1d(leaked, values[is_among(values, ranks)])
    return len(leaked)
