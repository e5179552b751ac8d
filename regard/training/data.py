"""The data of a training: pairs or labelled texts, from files or Python, without over-long lines, and a dev part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.text.labelled import read_labelled
from regard.text.lengths import character_limit, within_characters
from regard.text.normal import tidy
from regard.text.pairs import Corpus, Pair, read_pairs
from regard.text.split import leaked_sources, shared_targets, split
from regard.training.progress import Screen

SHOWN_LABELS = 12
Kind = Literal["translate", "classify"]
Pairs = str | Path | Sequence[str | Path] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Data:
    train: Sequence[Pair]
    dev: Sequence[Pair]
    name: str
    lines: int
    digest: str
    dev_digest: str
    """of dev, if it was given by itself"""
    max_characters: int
    """longer lines were left out"""


@dataclass(frozen=True)
class Given:
    """What the user gave to train on."""

    pairs: Pairs
    dev: Pairs | None = None
    task: Kind = "translate"
    reverse: bool = False
    languages: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.task == "classify" and (self.reverse or self.languages):
            raise ValueError("reverse and languages are for translating; expected neither with --task classify")


def read_data(given: Given, max_characters: int | None, screen: Screen) -> Data:
    """Read the training pairs and the dev part, given or set aside. `max_characters` None: from the data.

    A dev part that is given may have lines as long as its own lengths allow.
    """
    corpus = _corpus(given.pairs, given)
    limit = max_characters or character_limit(corpus.pairs)
    corpus = within_characters(corpus, limit)
    _tell_skipped(corpus, screen)
    if given.dev is None:
        train, dev = split(corpus.pairs)
        digest = ""
    else:
        held = _corpus(given.dev, given)
        held = within_characters(held, max(limit, character_limit(held.pairs)))
        _tell_skipped(held, screen)
        train, dev, digest = corpus.pairs, held.pairs, held.digest
        leaked = leaked_sources(train, dev)
        if leaked:
            screen.say(f"dev: {leaked:,} of its sources also occur in training: scores on it will flatter")
    screen.say(_summary(train, dev, given.task))
    return Data(train, dev, corpus.name, corpus.lines, corpus.digest, digest, limit)


def _tell_skipped(corpus: Corpus, screen: Screen) -> None:
    for line in corpus.report():
        screen.say(f"{corpus.name}: {line}")


def _summary(train: Sequence[Pair], dev: Sequence[Pair], task: Kind) -> str:
    """How many there are; of classification, of each label."""
    if task == "classify":
        labels = Counter(pair.target for pair in train)
        what, note = "texts", ", ".join(f"{label} {count:,}" for label, count in labels.most_common(SHOWN_LABELS))
        note += f", {len(labels) - SHOWN_LABELS:,} more labels" if len(labels) > SHOWN_LABELS else ""
    else:
        what, note = "pairs", f"{shared_targets(train, dev):,} dev targets occur in training"
    return f"{len(train):,} {what} to train on, {len(dev):,} to choose by ({note})"


def _corpus(pairs: Pairs, given: Given) -> Corpus:
    if not isinstance(pairs, (str, Path, Sequence)):
        raise ValueError(f"pairs: expected paths or (source, target) texts, got {pairs!r}")
    parts = [pairs] if isinstance(pairs, (str, Path)) else list(pairs)
    if parts and all(isinstance(each, (str, Path)) for each in parts):
        files = [Path(str(each)) for each in parts]
        return read_labelled(files) if given.task == "classify" else read_pairs(files, given.reverse, given.languages)
    return corpus_of(parts, given.reverse)


def corpus_of(texts: Sequence[Any], reverse: bool = False) -> Corpus:
    """(source, target) texts as a corpus; those with an empty side are skipped."""
    found: list[Pair] = []
    skipped: dict[str, list[int]] = {}
    for number, each in enumerate(texts, 1):
        if not isinstance(each, (tuple, list)) or len(each) != 2 or not all(isinstance(side, str) for side in each):
            raise ValueError(f"pairs: expected (source, target) texts or paths, got {each!r}")
        source, target = (tidy(side) for side in (reversed(each) if reverse else each))
        if source and target:
            found.append(Pair(source, target, number))
        else:
            skipped.setdefault("empty source or target", []).append(number)
    if not found:
        raise ValueError(f"pairs: expected at least one pair of texts, got {len(texts)} without any that can be used")
    return Corpus(found, len(texts), skipped, "pairs")
