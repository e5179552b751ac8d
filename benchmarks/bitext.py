"""The text that aligners are compared on: the same for every system.

Lower case, entities unescaped, punctuation split off, exact duplicates left out; the sentences of the gold set come
first, as text alone and with their own tokens. `data` holds the folders alignment, multi30k-en-de, english-french,
opennmt-demo-en-de and english-spanish. `write` makes train.tsv, dev.tsv (to choose a model by: no pair of it is in
train.tsv), and of the gold set gold.src, gold.tgt and gold.talp, whose lines are the first of train.tsv.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.alignment.tokens import split_punctuation, tokens
from regard.text.normal import tidy
from regard.text.pairs import read_lines

Sentences = tuple[str, str]
"""a source and its target"""


@dataclass(frozen=True)
class Source:
    """Where the text of a pair of languages comes from; a file of two sides, or two files, source then target."""

    gold: str
    train: tuple[tuple[str, ...], ...]
    dev: tuple[tuple[str, ...], ...]


PAIRS = {
    "fr": Source(
        "alignment/en-fr-hansards/dev",
        (
            ("multi30k-en-de/train.en.gz", "multi30k-en-de/train.fr.gz"),
            ("english-french/train.tsv.gz",),
        ),
        (("multi30k-en-de/val.en.gz", "multi30k-en-de/val.fr.gz"), ("english-french/dev.tsv",)),
    ),
    "de": Source(
        "alignment/de-en-europarl100/dev",
        (
            ("multi30k-en-de/train.de.gz", "multi30k-en-de/train.en.gz"),
            ("opennmt-demo-en-de/train.de.gz", "opennmt-demo-en-de/train.en.gz"),
        ),
        (("multi30k-en-de/val.de.gz", "multi30k-en-de/val.en.gz"),),
    ),
    "es": Source("alignment/en-es-xlwa/dev", (("english-spanish/train.tsv.gz",),), (("english-spanish/dev.tsv",),)),
}
"""Source first, as the gold set has it: English to French, German to English, English to Spanish"""


@dataclass(frozen=True)
class Bitext:
    gold: list[Sentences]
    rest: list[Sentences]
    dev: list[Sentences]
    links: Path
    """the gold links"""

    @property
    def train(self) -> list[Sentences]:
        """all text, that of the gold set first"""
        return [*self.gold, *self.rest]


def bitext(data: Path, pair: str) -> Bitext:
    source = PAIRS[pair]
    sides = (read_lines(data / f"{source.gold}.{side}") for side in ("src", "tgt"))
    gold = [(as_given(one), as_given(other)) for one, other in zip(*sides, strict=True)]
    seen = set(gold)
    rest = list(_prepared(data, source.train, seen))
    return Bitext(gold, rest, list(_prepared(data, source.dev, seen)), data / f"{source.gold}.talp")


def as_given(line: str) -> str:
    """Lower case, entities unescaped, with no token more and none less."""
    result = [_plain(token) for token in tokens(line)]
    if any(len(token.split()) != 1 for token in result):
        raise ValueError(f"expected tokens that stay one token each in lower case, got {line!r}")
    return " ".join(result)


def prepared(line: str) -> str:
    return split_punctuation(_plain(line))


def _plain(text: str) -> str:
    """Some text is escaped twice; soft hyphens are no letters."""
    return tidy(html.unescape(html.unescape(text)).replace("\u00ad", "").lower())


def _prepared(data: Path, files: tuple[tuple[str, ...], ...], seen: set[Sentences]) -> Iterator[Sentences]:
    """What was not seen before; pairs with an empty side are left out."""
    for names in files:
        for one, other in _rows([data / name for name in names]):
            sides = prepared(one), prepared(other)
            if all(sides) and sides not in seen:
                seen.add(sides)
                yield sides


def _rows(paths: list[Path]) -> Iterator[Sentences]:
    if len(paths) == 1:
        for line in read_lines(paths[0]):
            one, other = line.split("\t")[:2]
            yield one, other
    else:
        yield from zip(*map(read_lines, paths), strict=True)


def write(text: Bitext, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train.tsv", text.train), ("dev.tsv", text.dev)):
        _write(folder / name, [f"{one}\t{other}" for one, other in rows])
    for side, name in enumerate(("gold.src", "gold.tgt")):
        _write(folder / name, [row[side] for row in text.gold])
    _write(folder / "gold.talp", list(read_lines(text.links)))


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
