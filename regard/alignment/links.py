"""Links between the tokens of two texts, in the format of Pharaoh: `0-0 1-2 2-1`, source first, counted from 0.

Gold links are sure (`1-2`) or only possible (`1p2`, also `1?2`). A sure link is possible too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from regard.text.pairs import read_lines

Link = tuple[int, int]
"""(source token, target token)"""
Links = frozenset[Link]

Parsed = TypeVar("Parsed")
_LINK = re.compile("([0-9]+)([-p?])([0-9]+)")


@dataclass(frozen=True)
class Gold:
    """The links that people gave a pair."""

    sure: Links
    possible: Links
    """the sure ones among them"""


def parse_links(text: str) -> Links:
    """Of one line; a ValueError names what is no link."""
    return frozenset((source, target) for source, _, target in _parsed(text, "-"))


def parse_gold(text: str) -> Gold:
    """Of one line."""
    found = _parsed(text, "-p?")
    possible = frozenset((source, target) for source, _, target in found)
    return Gold(frozenset((source, target) for source, kind, target in found if kind == "-"), possible)


def write_links(links: Iterable[Link]) -> str:
    """Sorted, as one line without its end."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read_links(path: str | Path) -> list[Links]:
    """The links of a file, a line a pair; an empty line is a pair without links."""
    return [_named(parse_links, line, path, number) for number, line in enumerate(read_lines(path), 1)]


def read_gold(path: str | Path, sizes: Sequence[tuple[int, int]] | None = None) -> list[Gold]:
    """The gold links of a file, a line a pair.

    `sizes`, the numbers of source and target tokens of each pair, are what they must lie within. All lines are looked
    at before one is blamed, so that a file that counts from 1 is told as such.
    """
    gold = [_named(parse_gold, line, path, number) for number, line in enumerate(read_lines(path), 1)]
    if sizes is None:
        return gold
    if len(gold) != len(sizes):
        raise ValueError(f"{path}: expected a line of links for each of {len(sizes):,} pairs, got {len(gold):,} lines")
    beyond = [
        (number, link)
        for number, (each, size) in enumerate(zip(gold, sizes, strict=True), 1)
        for link in sorted(each.possible)
        if link[0] >= size[0] or link[1] >= size[1]
    ]
    if not beyond:
        return gold
    number, link = beyond[0]
    counts = " and ".join(
        f"{count} {side}" for count, side in zip(sizes[number - 1], ("source", "target"), strict=True)
    )
    told = f"{path}, line {number}: link {link[0]}-{link[1]} lies outside of the pair, which has {counts} tokens"
    by_one = all(place <= size for at, far in beyond for place, size in zip(far, sizes[at - 1], strict=True))
    if by_one and without_zero(gold):
        raise ValueError(f"{told}; no link of the file has a 0, so it counts from 1: expected links counted from 0")
    raise ValueError(f"{told}; expected links counted from 0")


def without_zero(gold: Sequence[Gold]) -> bool:
    """Do the links look as if they were counted from 1: there are some, and none has a 0?"""
    links = [link for each in gold for link in each.possible]
    return bool(links) and not any(0 in link for link in links)


def _parsed(text: str, kinds: str) -> list[tuple[int, str, int]]:
    found = []
    for token in text.split():
        match = _LINK.fullmatch(token)
        if match is None or match[2] not in kinds:
            forms = "0-1" if kinds == "-" else "0-1 (sure) or 0p1 (possible)"
            raise ValueError(f"expected links like {forms}, got {token!r}")
        found.append((int(match[1]), match[2], int(match[3])))
    return found


def _named(parse: Callable[[str], Parsed], line: str, path: str | Path, number: int) -> Parsed:
    try:
        return parse(line)
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: {error}") from None
