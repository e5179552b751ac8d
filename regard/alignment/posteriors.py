"""Link probabilities of many sentence pairs, stored sparsely: of each pair, the token pairs that are likely at all.

The probability of a link is the mean of the posteriors of both directions: that the source token generated the target
token, and that the target token generated the source token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from regard.alignment.corpus import Floats, Ints, TokenizedCorpus
from regard.alignment.hmm import Model, posteriors
from regard.alignment.links import Link, Links
from regard.look.trace import Matrix

MIN_STORED = 0.01  # lower probabilities are not stored


@dataclass(frozen=True)
class LinkProbabilities(Sequence[dict[Link, float]]):
    """The probability of each likely link, by (source token, target token), of each pair: a sequence of dicts."""

    begins: Ints  # [pairs]: where the links of each pair begin and end
    ends: Ints  # [pairs]
    sources: Ints  # [links]
    targets: Ints  # [links]
    values: Floats  # [links]

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, index: int) -> dict[Link, float]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[Link, float]]: ...

    def __getitem__(self, index: int | slice) -> dict[Link, float] | list[dict[Link, float]]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        part = slice(self.begins[index], self.ends[index])
        links = zip(self.sources[part].tolist(), self.targets[part].tolist(), strict=True)
        return dict(zip(links, self.values[part].tolist(), strict=True))

    def matrix(self, number: int, shape: tuple[int, int]) -> Matrix:
        """Return the probabilities of a pair, [target tokens, source tokens]; 0 where they are not stored."""
        part = slice(self.begins[number], self.ends[number])
        weights = np.zeros(shape, np.float32)
        weights[self.targets[part], self.sources[part]] = self.values[part]
        return weights

    def at_least(self, minimum: float) -> LinkProbabilities:
        """Return those of at least `minimum`."""
        chosen = self.values >= minimum
        before = np.concatenate([[0], np.cumsum(chosen)])  # the chosen ones before each
        return LinkProbabilities(
            before[self.begins], before[self.ends], self.sources[chosen], self.targets[chosen], self.values[chosen]
        )

    def links(self) -> list[Links]:
        """Return all stored links of each pair."""
        return [frozenset(each) for each in self]


def link_probabilities(
    corpus: TokenizedCorpus, model: Model, threads: int = 1, advance: Callable[[], None] = lambda: None
) -> LinkProbabilities:
    """Return the link probabilities of every pair of the corpus."""
    begins, ends = (np.zeros(len(corpus.first), np.int64) for _ in range(2))
    parts: list[tuple[Ints, Ints, Floats]] = [(*(np.empty(0, np.int32),) * 2, np.empty(0, np.float32))]
    total = 0
    for group, forward, backward in posteriors(corpus, model, threads):
        mean = (forward.positions + backward.positions.transpose(1, 0, 2)) / 2  # [J, I, B]
        rows, sources, targets = np.nonzero(np.ascontiguousarray((mean >= MIN_STORED).transpose(2, 1, 0)))
        parts.append((sources.astype(np.int32), targets.astype(np.int32), mean[targets, sources, rows]))
        until = total + np.cumsum(np.bincount(rows, minlength=len(group.numbers)))
        begins[group.numbers], ends[group.numbers] = np.concatenate([[total], until[:-1]]), until
        total = int(until[-1])
    advance()
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return LinkProbabilities(begins[corpus.first], ends[corpus.first], *columns)
