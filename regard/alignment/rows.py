"""The sentence pairs to align: a row for every line of the files, so that every line gets its links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from regard.text.pairs import EXPECTED, Corpus, first_lines, rows_of

MAX_CHARACTERS = 2_000  # a pair with a longer side gets no links: memory and time grow with the product of both lengths
Notify = Callable[[str], None]
Sides = tuple[str, str]  # source and target, not tidied


def read_rows(
    paths: Sequence[str | Path],
    reverse: bool = False,
    languages: tuple[str, str] | None = None,
    notify: Notify | None = None,
) -> list[Sides]:
    """Return the sides of every line, as given; a broken line is a pair of empty texts, with a notice."""
    rows: list[Sides] = []
    broken: dict[str, list[int]] = {}
    for number, row in enumerate(rows_of(paths, languages), 1):
        if isinstance(row, str):
            if row != "empty line":
                broken.setdefault(row, []).append(number)
            rows.append(("", ""))
        else:
            rows.append((row[1], row[0]) if reverse else row)
    name = " + ".join(map(str, paths))
    _report_broken(broken, name, any(map(any, rows)), notify)
    if not rows:
        raise ValueError(f"no pair in {name}: it is empty; {EXPECTED}")
    return rows


def _report_broken(broken: dict[str, list[int]], name: str, any_pair: bool, notify: Notify | None) -> None:
    """Give a notice for each reason why lines are broken; raise a ValueError if no line is a pair."""
    for reason, lines in broken.items():
        where = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines):,} lines ({first_lines(lines)})"
        if not any_pair:
            raise ValueError(f"{name}, {where}: no pair, {reason}; {EXPECTED}")
        if notify is not None:
            notify(f"{name}, {where}: no pair, {reason}; no links there")


def without_long(pairs: Sequence[Sides], notify: Notify | None) -> Sequence[Sides]:
    """Return the pairs with those that are too long replaced by empty ones."""
    too_long = {number for number, sides in enumerate(pairs, 1) if max(map(len, sides)) > MAX_CHARACTERS}
    if not too_long:
        return pairs
    if notify is not None:
        reason = f"longer than {MAX_CHARACTERS:,} characters, no links there"
        notify(*Corpus([], 0, {reason: sorted(too_long)}).report())
    return [("", "") if number in too_long else sides for number, sides in enumerate(pairs, 1)]
