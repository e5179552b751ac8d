"""Words by their letters: every run of 3 to 5 letters of a word, as numbers (Bojanowski et al. 2017).

A word is marked at both ends, so that a beginning or an ending is not the same as what stands in the middle. A word
that training never met still shares its stem and its endings with words that it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

BEGINS, ENDS = "\x02", "\x03"
LENGTHS = (3, 4, 5)
RARE = 2
"""a run that fewer words have says nothing that the word itself does not"""


class Spelling:
    """word → the numbers of its runs, from 1; 0 is padding."""

    def __init__(self, words: Iterable[str]) -> None:
        """`words` are those of training, each once."""
        counts = Counter(run for word in words for run in runs(word))
        kept = sorted(run for run, count in counts.items() if count >= RARE)
        self._numbers = {run: number for number, run in enumerate(kept, 1)}
        self._known: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        """With padding."""
        return len(self._numbers) + 1

    def __call__(self, word: str) -> tuple[int, ...]:
        found = self._known.get(word)
        if found is None:
            found = tuple(sorted(self._numbers[run] for run in runs(word) if run in self._numbers))
            self._known[word] = found
        return found


def runs(word: str) -> set[str]:
    marked = f"{BEGINS}{word}{ENDS}"
    return {marked[place : place + size] for size in LENGTHS for place in range(len(marked) - size + 1)}
