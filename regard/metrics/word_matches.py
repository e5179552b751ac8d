"""Which words of a translation are right: those that the edit distance matches to words of the closest reference."""

from __future__ import annotations

from collections.abc import Sequence

Words = Sequence[str]
EDIT = 1 << 20  # the cost of an edit; a match earns 1, which only decides between alignments of equally many edits


def matched_words(words: Words, references: Sequence[Words]) -> list[bool]:
    """Return for each word whether a Levenshtein alignment with the closest reference matches it to an equal word.

    The closest reference is the one with the fewest edits, then with the most matches, then the first. Of several
    alignments, one with the fewest edits and then the most matches counts.
    """
    if not references:
        raise ValueError("references: expected at least one, got none")
    aligned = [aligned_words(words, reference) for reference in references]
    return min(aligned, key=lambda each: each[0])[1]


def aligned_words(words: Words, reference: Words) -> tuple[int, list[bool]]:
    """Return the cost of the best alignment, EDIT · edits − matches, and whether it matches each word."""
    first = 0  # equal words at both ends belong to some best alignment
    shorter = min(len(words), len(reference))
    while first < shorter and words[first] == reference[first]:
        first += 1
    last = 0
    while last < shorter - first and words[-1 - last] == reference[-1 - last]:
        last += 1
    inner, other = words[first : len(words) - last], reference[first : len(reference) - last]
    cost, matched = _aligned(inner, other)
    return cost - first - last, [True] * first + matched + [True] * last


def _aligned(words: Words, reference: Words) -> tuple[int, list[bool]]:
    """Return the same, by dynamic programming: costs[i][j] is that of the first i words and the first j of the other.

    costs[i][j] = min(costs[i−1][j] + EDIT, costs[i][j−1] + EDIT, costs[i−1][j−1] + (−1 if equal else EDIT))
    """
    costs = [[EDIT * place for place in range(len(reference) + 1)]]
    for word in words:
        above = costs[-1]
        row = [above[0] + EDIT]
        for place, other in enumerate(reference):
            diagonal = above[place] + (-1 if word == other else EDIT)
            row.append(min(diagonal, above[place + 1] + EDIT, row[-1] + EDIT))
        costs.append(row)
    matched = [False] * len(words)
    i, j = len(words), len(reference)
    while i and j:
        equal = words[i - 1] == reference[j - 1]
        if costs[i][j] == costs[i - 1][j - 1] + (-1 if equal else EDIT):
            i, j = i - 1, j - 1
            matched[i] = equal
        elif costs[i][j] == costs[i - 1][j] + EDIT:
            i -= 1
        else:
            j -= 1
    return costs[-1][-1], matched
