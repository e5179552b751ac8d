"""Corpora that are stored in a cache, for tests."""

from __future__ import annotations

import random
from pathlib import Path

from regard.corpora.blocks import SourceFiles
from regard.corpora.cache import Cache
from regard.corpora.texts import StoredTexts, store_texts

WORDS = ["a", "the", "boy", "girl", "mango's", "book,", "water", "House", "sees", "wants", "घर", "मुलगा", "पुस्तक"]
WORDS += ["İstanbul", "naïve", "½", "U.S.", "3.5", "don't", "—", "“go”", "l'homme", "x", "end."]


def lines(count: int, seed: int = 1) -> list[str]:
    """Lines of a table: pairs, duplicates, empty ones and others without a pair."""
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 9)))

    made: list[str] = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.05 and made:
            made.append(rng.choice(made))
        elif kind < 0.1:
            made.append(rng.choice(["", "one column", "\tno source", "no target\t \t", "\t"]))
        else:
            made.append(f"{text()}\t  {text()} \tCC-BY")
    return made


def written(path: Path, count: int = 600, seed: int = 1) -> Path:
    path.write_text("\n".join(lines(count, seed)), encoding="utf-8")
    return path


def stored(*files: Path, cache: Cache | None = None, **how: object) -> StoredTexts:
    """The texts of files, stored beside them."""
    source = SourceFiles(tuple(files), **how)  # type: ignore[arg-type]
    return store_texts(source, cache or Cache.beside(files[0]), lambda *_: None)
