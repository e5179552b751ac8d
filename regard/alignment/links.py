"""Links between the tokens of two texts, in Pharaoh format: `0-0 1-2 2-1`, source first, counted from 0.

Gold links are sure (`1-2`) or only possible (`1p2`, also `1?2`). A sure link is possible too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from regard.text.pairs import read_lines

Link = tuple[int, int]  # (source token, target token)
Links = frozenset[Link]

Parsed = TypeVar("Parsed")
_LINK = re.compile("([0-9]+)([-p?])([0-9]+)")


@dataclass(frozen=True)
class Gold:
    """The gold links of a pair, given by people."""

    sure: Links
    possible: Links  # including the sure ones


def parse_links(text: str) -> Links:
    """Parse the links of one line; a ValueError names the first token that is not a link."""
    return frozenset((source, target) for source, _, target in _parsed(text, "-"))


def parse_gold(text: str) -> Gold:
    """Parse the gold links of one line."""
    parsed = _parsed(text, "-p?")
    possible = frozenset((source, target) for source, _, target in parsed)
    return Gold(frozenset((source, target) for source, kind, target in parsed if kind == "-"), possible)


def write_links(links: Iterable[Link]) -> str:
    """Return the links, sorted, as one line without a line end."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read_links(path: str | Path) -> list[Links]:
    """Read the links of a file, one pair per line; an empty line is a pair without links."""
    return _read(path, parse_links)


def read_gold(path: str | Path, sizes: Sequence[tuple[int, int]] | None = None) -> list[Gold]:
    """Read the gold links of a file, one pair per line.

    The links must lie within `sizes`, the numbers of source and target tokens of each pair. All lines are checked
    before an error is raised, so that the message can say that a file counts from 1.
    """
    gold = _read(path, parse_gold)
    if sizes is None:
        return gold
    if len(gold) != len(sizes):
        raise ValueError(f"{path}: expected a line of links for each of {len(sizes):,} pairs, got {len(gold):,} lines")
    outside = [
        (number, link)
        for number, (each, size) in enumerate(zip(gold, sizes, strict=True), 1)
        for link in sorted(each.possible)
        if link[0] >= size[0] or link[1] >= size[1]
    ]
    if not outside:
        return gold
    number, link = outside[0]
    counts = "{} source and {} target".format(*sizes[number - 1])
    message = f"{path}, line {number}: link {link[0]}-{link[1]} lies outside of the pair, which has {counts} tokens"
    by_one = all(index <= size for line, far in outside for index, size in zip(far, sizes[line - 1], strict=True))
    why = " no link of the file has a 0, so it counts from 1:" if by_one and without_zero(gold) else ""
    raise ValueError(f"{message};{why} expected links counted from 0")


def without_zero(gold: Sequence[Gold]) -> bool:
    """Return whether the links seem to be counted from 1: there are some, and none has a 0."""
    links = [link for each in gold for link in each.possible]
    return bool(links) and not any(0 in link for link in links)


def _parsed(text: str, kinds: str) -> list[tuple[int, str, int]]:
    """Return (source, kind, target) of each link of a line; `kinds` are the separators that are allowed."""
    links = []
    for token in text.split():
        match = _LINK.fullmatch(token)
        if match is None or match[2] not in kinds:
            forms = "0-1" if kinds == "-" else "0-1 (sure) or 0p1 (possible)"
            raise ValueError(f"expected links like {forms}, got {token!r}")
        links.append((int(match[1]), match[2], int(match[3])))
    return links


def _read(path: str | Path, parse: Callable[[str], Parsed]) -> list[Parsed]:
    """Parse each line of a file; errors name the file and the line."""
    parsed = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            parsed.append(parse(line))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    return parsed
