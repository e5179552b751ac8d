"""`python -m tools.sample.overlap FILE.tsv ...`: how much of the sample also stands in other collections.

Texts are compared in NFKC, lower-cased, only their letters, marks and digits; the files hold English, a tab, Marathi
and perhaps more columns.
"""

import sys
import unicodedata
from pathlib import Path

from regard.samples import DEV, TRAIN, folder, read


def plain(text: str) -> str:
    """The text with nothing left but lower-case letters, marks and digits, runs of them parted by one blank."""
    folded = unicodedata.normalize("NFKC", text).lower()
    return " ".join("".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in folded).split())


def overlap(ours: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> dict[str, list[str]]:
    """What both hold: sources, targets, and pairs as source and target joined by a tab."""
    overlaps = {}
    for name, columns in (("sources", (0,)), ("targets", (1,)), ("pairs", (0, 1))):
        known, mine = (
            {"\t".join(plain(pair[column]) for column in columns) for pair in side} for side in (theirs, ours)
        )
        overlaps[name] = sorted(known & mine)
    return overlaps


def _rows(path: Path) -> list[tuple[str, str]]:
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [(row[0], row[1]) for row in rows if len(row) > 1]


def main(arguments: list[str]) -> None:
    if not arguments:
        raise SystemExit("usage: python -m tools.sample.overlap FILE.tsv ...")
    ours = [pair for name in (TRAIN, *DEV) for pair in read(folder() / name)]
    theirs = [pair for argument in arguments for pair in _rows(Path(argument))]
    sizes = {"sources": len({pair[0] for pair in ours}), "targets": len({pair[1] for pair in ours}), "pairs": len(ours)}
    for name, common in overlap(ours, theirs).items():
        print(f"{name}: {len(common)} of {sizes[name]}")
        for text in common:
            print(f"  {text}")


if __name__ == "__main__":
    main(sys.argv[1:])
