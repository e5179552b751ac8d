"""Recombination: of hypotheses with the same text so far, a beam continues only one.

Hypotheses whose tokens spell the same prefix can be continued to the same texts. The one that reached it first, or at
the same step with the higher probability, continues; the others leave their slots to different prefixes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import torch
from torch import Tensor

from regard.text.vocabulary import END

Surface = Callable[[Sequence[int]], Hashable]


class Recombination:
    """The prefixes that a search has reached, for each of its sentences."""

    def __init__(self, surface: Surface, sentences: int) -> None:
        self._surface = surface
        self._prefixes: list[list[tuple[int, ...]]] = [[()] for _ in range(sentences)]
        """of each sentence, the tokens of the hypotheses in its slots"""
        self._visited: list[set[Hashable]] = [{surface(())} for _ in range(sentences)]

    def distinct(
        self, sentences: np.ndarray, scores: Tensor, parents: Tensor, tokens: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return extensions [B', n], best first, with those whose prefix was reached before moved to the end, with a
        score of −inf.

        All prefixes in a beam differ, so that no two hypotheses that end have the same text either.
        """
        repeated = np.zeros(scores.shape, bool)
        columns = (scores.cpu().numpy(), parents.cpu().numpy(), tokens.cpu().numpy())
        for row, sentence in enumerate(sentences.tolist()):
            visited = set(self._visited[sentence])
            for place, (score, parent, token) in enumerate(zip(*(each[row] for each in columns), strict=True)):
                if token == END or not np.isfinite(score):
                    continue
                surface = self._surface((*self._prefixes[sentence][parent], int(token)))
                repeated[row, place] = surface in visited
                visited.add(surface)
        scores = scores.masked_fill(torch.from_numpy(repeated).to(scores.device), -torch.inf)
        order = torch.argsort(scores, dim=1, descending=True, stable=True)
        return scores.gather(1, order), parents.gather(1, order), tokens.gather(1, order)

    def extend(self, sentences: np.ndarray, parents: np.ndarray, tokens: np.ndarray, possible: np.ndarray) -> None:
        """Record the extensions [B', k] that continue; those that are not `possible` only fill slots."""
        for row, sentence in enumerate(sentences.tolist()):
            before = self._prefixes[sentence]
            after = [
                (*before[parent], token)
                for parent, token in zip(parents[row].tolist(), tokens[row].tolist(), strict=True)
            ]
            self._prefixes[sentence] = after
            self._visited[sentence].update(
                self._surface(after[slot]) for slot in np.flatnonzero(possible[row]).tolist()
            )
