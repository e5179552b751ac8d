"""Symmetrization: one set of links from those of two directions (Och & Ney 2003, Koehn et al. 2003).

Each direction links a token to at most one token of the other side, so neither can express many-to-many links. Both are
given source first: the links of a model from target to source must be swapped before.

- intersection: links of both directions; highest precision.
- union: links of either direction; highest recall.
- grow-diag: starting with the intersection, repeatedly add links of the union that are adjacent to a link, also
  diagonally, and have a token without a link, until there are none.
- grow-diag-final: then add links of the first direction, then of the second, that have a token without a link.
- grow-diag-final-and: the same, but both tokens must be without a link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Literal, get_args

from regard.alignment.links import Link, Links

Symmetrization = Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"]
SYMMETRIZATIONS: tuple[Symmetrization, ...] = get_args(Symmetrization)

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrize(forward: Iterable[Link], backward: Iterable[Link], how: Symmetrization) -> Links:
    """Return the links of two directions, both source first, combined into one set."""
    first, second = frozenset(forward), frozenset(backward)
    if how == "intersection":
        return first & second
    if how == "union":
        return first | second
    if how not in SYMMETRIZATIONS:
        raise ValueError(f"symmetrization: expected one of {', '.join(SYMMETRIZATIONS)}, got {how!r}")
    grown = _GrowingLinks(first & second)
    grown.grow(first | second)
    if how != "grow-diag":
        condition = all if how == "grow-diag-final-and" else any
        grown.finish(first, condition)
        grown.finish(second, condition)
    return frozenset(grown.links)


class _GrowingLinks:
    """A set of links to which others are added, and the tokens that are linked."""

    def __init__(self, links: Links) -> None:
        self.links = set(links)
        self._sources = {source for source, _ in links}
        self._targets = {target for _, target in links}

    def grow(self, union: Links) -> None:
        """Sweep over the links, in order, until nothing is added; links added ahead are visited in the same sweep."""
        added = True
        while added:
            added = False
            ahead = list(self.links)
            heapify(ahead)
            while ahead:
                link = heappop(ahead)
                for source, target in NEIGHBOURS:
                    near = link[0] + source, link[1] + target
                    if near in union and near not in self.links and any(self._free(near)):
                        self._add(near)
                        added = True
                        if near > link:
                            heappush(ahead, near)

    def finish(self, links: Links, condition: Callable[[Iterable[bool]], bool]) -> None:
        """Add those of `links` whose tokens are free as the condition requires."""
        for link in sorted(links):
            if condition(self._free(link)):
                self._add(link)

    def _free(self, link: Link) -> tuple[bool, bool]:
        """Return whether the source token and the target token are without a link."""
        return link[0] not in self._sources, link[1] not in self._targets

    def _add(self, link: Link) -> None:
        self.links.add(link)
        self._sources.add(link[0])
        self._targets.add(link[1])
