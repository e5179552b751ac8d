"""One set of links from those of two directions (Och & Ney 2003, Koehn et al. 2003).

Each direction links a token to at most one of the other side, so neither can be right where several belong to one. Both
are given source first: those of a model from target to source are turned round before.

- intersection: what both say; the most precise.
- union: what either says; misses the least.
- grow-diag: from the intersection on, links of the union that touch a link, also across a corner, and join a token that
  has none yet, again and again until none is left.
- grow-diag-final: then links of the first direction, then of the second, that join a token that has none yet.
- grow-diag-final-and: the same, but both of their tokens must have none yet.
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
    first, second = frozenset(forward), frozenset(backward)
    if how == "intersection":
        return first & second
    if how == "union":
        return first | second
    if how not in SYMMETRIZATIONS:
        raise ValueError(f"symmetrization: expected one of {', '.join(SYMMETRIZATIONS)}, got {how!r}")
    found = _Growing(first & second)
    found.grow(first | second)
    if how != "grow-diag":
        enough: Callable[[bool, bool], bool] = _both if how == "grow-diag-final-and" else _either
        found.finish(first, enough)
        found.finish(second, enough)
    return frozenset(found.links)


class _Growing:
    """Links, and which tokens have one."""

    def __init__(self, links: Links) -> None:
        self.links = set(links)
        self._sources = {source for source, _ in links}
        self._targets = {target for _, target in links}

    def grow(self, union: Links) -> None:
        """Sweeps from the first source token to the last; what is added further on is met in the same sweep."""
        added = True
        while added:
            added = False
            ahead = list(self.links)
            heapify(ahead)
            while ahead:
                link = heappop(ahead)
                for source, target in NEIGHBOURS:
                    near = link[0] + source, link[1] + target
                    if near in union and near not in self.links and _either(*self._free(near)):
                        self._add(near)
                        added = True
                        if near > link:
                            heappush(ahead, near)

    def finish(self, links: Links, enough: Callable[[bool, bool], bool]) -> None:
        for link in sorted(links):
            if enough(*self._free(link)):
                self._add(link)

    def _free(self, link: Link) -> tuple[bool, bool]:
        return link[0] not in self._sources, link[1] not in self._targets

    def _add(self, link: Link) -> None:
        self.links.add(link)
        self._sources.add(link[0])
        self._targets.add(link[1])


def _either(source: bool, target: bool) -> bool:
    return source or target


def _both(source: bool, target: bool) -> bool:
    return source and target
