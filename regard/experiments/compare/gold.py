"""Gold links for the alignment error rate: sentence pairs, and the links that people gave them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.alignment.links import Gold, read_gold
from regard.alignment.rows import Sides
from regard.alignment.tokens import tokens
from regard.text.pairs import EXPECTED, rows_of


@dataclass(frozen=True)
class GoldSet:
    """Sentence pairs, exactly as given, and the gold links of each."""

    pairs: Sequence[Sides]
    links: Sequence[Gold]
    digest: str  # of both


def read_gold_set(files: Sequence[str | Path], reverse: bool, languages: tuple[str, str] | None) -> GoldSet:
    """Read sentence pairs from all files but the last, and their links, source first, from the last one.

    With `reverse` the second side of the pairs is the source, as in `regard align`.
    """
    if len(files) not in (2, 3):
        raise ValueError(f"gold: expected a file of pairs or two parallel files, then one of links; got {len(files)}")
    pairs: list[Sides] = []
    for number, row in enumerate(rows_of(files[:-1], languages), 1):
        if isinstance(row, str):
            raise ValueError(f"gold: {files[0]}, line {number} is no pair: {row}; {EXPECTED}")
        pairs.append((row[1], row[0]) if reverse else (row[0], row[1]))
    if not pairs:
        raise ValueError(f"gold: no pair in {files[0]}: it is empty; {EXPECTED}")
    links = read_gold(files[-1], [(len(tokens(source)), len(tokens(target))) for source, target in pairs])
    content = "\n".join(f"{source}\t{target}" for source, target in pairs) + repr(
        [(sorted(each.sure), sorted(each.possible)) for each in links]
    )
    return GoldSet(pairs, links, hashlib.sha256(content.encode(errors="replace")).hexdigest())
