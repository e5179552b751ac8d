"""Where the words of a source are in its translation, by the attention weights between words.

A group S of source words is in the contiguous target words a…b that maximize

    Σ_{t=a…b} (Σ_{s∈S} g_ts − Σ_{s∉S} g_ts − m)        g_ts = w_ts / √(Σ_t' w_t's), m = MARGIN

which attend to it for the most part, or stand between words that do. g is the geometric mean of the weight w_ts and of
its share in what s receives from all target words; end tokens are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.look.trace import Matrix, Trace

MARGIN = 0.02  # so that words which attend to the end token alone are left out
Range = tuple[int, int]  # start and end: of a word as offsets in its text, of several words as indices


@dataclass(frozen=True)
class Projection:
    """The words of a source and of its translation, with the weights between them."""

    source: list[Range]  # the offsets of each word
    target: list[Range]
    weights: Matrix  # [target words, source words]

    @classmethod
    def of(cls, traces: Sequence[Trace], source: str) -> Projection:
        """Return the projection of a source whose consecutive parts were translated with these traces; the
        translation is their targets, joined by spaces."""
        sides: tuple[list[Range], list[Range]] = [], []
        blocks: list[tuple[int, int, Matrix]] = []
        source_begin = target_begin = 0
        for trace in traces:
            source_begin = max(source_begin, source.find(trace.source.text, source_begin))
            target_words, source_words, weights = trace.by_words()
            columns = [index for index, word in enumerate(source_words) if word.text.strip()]
            rows = [index for index, word in enumerate(target_words) if word.text.strip()]
            blocks.append((len(sides[1]), len(sides[0]), weights[np.ix_(rows, columns)]))
            sides[0].extend((source_begin + source_words[i].start, source_begin + source_words[i].end) for i in columns)
            sides[1].extend((target_begin + target_words[i].start, target_begin + target_words[i].end) for i in rows)
            source_begin += len(trace.source.text)
            target_begin += len(trace.target.text) + 1
        table = np.zeros((len(sides[1]), len(sides[0])), np.float32)
        for row, column, block in blocks:
            table[row : row + block.shape[0], column : column + block.shape[1]] = block
        return cls(*sides, table)

    def without(self, removed: Sequence[tuple[int, int, object]]) -> Projection:
        """Return the projection without the target words that lie inside a part that is removed: (start, end, …)."""
        rows = [
            index
            for index, word in enumerate(self.target)
            if not any(start <= word[0] and word[1] <= end for start, end, _ in removed)
        ]
        return Projection(self.source, [self.target[row] for row in rows], self.weights[rows])

    def with_copies(self, copies: Iterable[tuple[Range, Range]]) -> Projection:
        """Return the projection in which the copy of some source words attends to these alone, and nothing else does;
        `copies`: the offsets of each in source and target."""
        weights = self.weights.copy()
        for source, target in copies:
            columns = self.sources_in(*source)
            rows = [index for index, word in enumerate(self.target) if word[0] < target[1] and word[1] > target[0]]
            weights[rows] = 0
            weights[:, columns] = 0
            weights[np.ix_(rows, columns)] = 1 / max(len(columns), 1)
        return Projection(self.source, self.target, weights)

    def sources_in(self, start: int, end: int) -> list[int]:
        """Return the source words that lie, at least partly, between two offsets."""
        return [index for index, word in enumerate(self.source) if word[0] < end and word[1] > start]

    def target_at(self, offset: int) -> int | None:
        """Return the target word at an offset."""
        return next((index for index, word in enumerate(self.target) if word[0] <= offset < word[1]), None)

    def share(self, targets: Collection[int], sources: Collection[int]) -> float:
        """Return how much the target words attend to the source words, on average."""
        if not targets or not sources:
            return 0.0
        return float(self.weights[np.ix_(list(targets), list(sources))].sum(1).mean())

    def span(
        self, sources: Collection[int], free: Sequence[bool], firsts: Sequence[bool], lasts: Sequence[bool]
    ) -> Range | None:
        """Return the indices (first, last + 1) of the contiguous target words, all of them free, that attend to these
        source words; at least one word. The first must be among `firsts`, the last among `lasts`. None: there are none
        such."""
        mutual = self.weights / np.sqrt(np.maximum(self.weights.sum(0), 1e-9))
        values = (2 * mutual[:, list(sources)].sum(1) - mutual.sum(1) - MARGIN).tolist()
        best: tuple[float, Range] | None = None
        for first in range(len(values)):
            total, index = 0.0, first
            while firsts[first] and index < len(values) and free[index]:
                total += values[index]
                index += 1
                if lasts[index - 1] and (best is None or total > best[0]):
                    best = total, (first, index)
        return None if best is None else best[1]

    def partner(self, source: int) -> int | None:
        """Return the target word that attends most to a source word; None if it attends more to another one."""
        if not len(self.target):
            return None
        target = int(self.weights[:, source].argmax())
        return target if self.weights[target, source] > 0 and self.weights[target].argmax() == source else None

    def start_of(self, offset: int) -> int | None:
        """Return where the translation of the source word that begins at or after an offset begins: the first such word
        that has a partner. None if there is no such word."""
        following = [index for index, word in enumerate(self.source) if word[0] >= offset]
        partners = [partner for index in following if (partner := self.partner(index)) is not None]
        return self.target[partners[0]][0] if partners else None

    def end_of(self, offset: int) -> int | None:
        """Return where the translation of the source word that ends at or before an offset ends: the last such word
        that has a partner. None if there is no such word."""
        preceding = [index for index, word in enumerate(self.source) if word[1] <= offset]
        partners = [partner for index in preceding if (partner := self.partner(index)) is not None]
        return self.target[partners[-1]][1] if partners else None
