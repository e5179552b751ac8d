"""The text data of a training: pairs or labelled texts, from files or Python, without over-long lines, and dev."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.tasks.spec import Given, TrainingData
from regard.text.lengths import character_limit, within_characters
from regard.text.normal import match_key, tidy
from regard.text.pairs import Corpus, Pair
from regard.text.split import leaked_sources, split
from regard.training.progress import Screen

Pairs = Sequence[Pair]


def read_text_data(
    given: Given,
    read: Callable[[Sequence[Path]], Corpus],
    summary: Callable[[Pairs, Pairs], str],
    max_characters: int | None,
    screen: Screen,
) -> TrainingData[Pairs]:
    """Read the training pairs, and the dev part if it is given; otherwise set some of them aside.

    `max_characters` None: chosen from the data. A dev part that is given may have longer lines, if its own lengths
    allow them.
    """
    corpus = read_corpus(given.data, given.reverse, read)
    limit = max_characters or character_limit(corpus.pairs)
    corpus = within_characters(corpus, limit)
    _show_skipped(corpus, screen)
    train, dev, dev_digest = corpus.pairs, (), ""  # type: Pairs, Pairs, str
    if given.dev is None:
        train, dev = split(corpus.pairs)
    else:
        dev_corpus = read_corpus(given.dev, given.reverse, read)
        dev_corpus = within_characters(dev_corpus, max(limit, character_limit(dev_corpus.pairs)))
        _show_skipped(dev_corpus, screen)
        dev, dev_digest = dev_corpus.pairs, dev_corpus.digest
        leaked = leaked_sources(train, dev)
        if leaked:
            screen.say(f"dev: {leaked:,} of its sources also occur in training: scores on it will flatter")
    screen.say(summary(train, dev))
    return TrainingData(train, dev, corpus.name, corpus.lines, corpus.digest, dev_digest, limit)


def with_extra(data: TrainingData[Pairs], extra: Corpus, screen: Screen) -> TrainingData[Pairs]:
    """Return the data with further training pairs, such as translations by other models.

    Pairs that occur in it already are left out, and those with a source of dev, by which dev would leak into training.
    """
    known = {(pair.source, pair.target) for pair in data.train}
    sources = {match_key(pair.source) for pair in data.dev}
    assert data.max_characters is not None
    added = [
        pair
        for pair in within_characters(extra, data.max_characters).pairs
        if (pair.source, pair.target) not in known and match_key(pair.source) not in sources
    ]
    screen.say(f"{len(added):,} further pairs for training, of {len(extra.pairs):,}")
    return replace(data, extra=added, extra_digest=extra.digest)


def _show_skipped(corpus: Corpus, screen: Screen) -> None:
    for line in corpus.report():
        screen.say(f"{corpus.name}: {line}")


def read_corpus(pairs: Any, reverse: bool, read: Callable[[Sequence[Path]], Corpus]) -> Corpus:
    """Return the corpus of files, which `read` reads, or of texts."""
    if not isinstance(pairs, (str, Path, Sequence)):
        raise ValueError(f"pairs: expected paths or (source, target) texts, got {pairs!r}")
    parts = [pairs] if isinstance(pairs, (str, Path)) else list(pairs)
    if parts and all(isinstance(each, (str, Path)) for each in parts):
        files = [Path(str(each)) for each in parts]
        return read(files)
    return corpus_of(parts, reverse)


def corpus_of(texts: Sequence[Any], reverse: bool = False) -> Corpus:
    """Return (source, target) texts as a corpus; those with an empty side are skipped."""
    pairs: list[Pair] = []
    skipped: dict[str, list[int]] = {}
    for number, each in enumerate(texts, 1):
        if not isinstance(each, (tuple, list)) or len(each) != 2 or not all(isinstance(side, str) for side in each):
            raise ValueError(f"pairs: expected (source, target) texts or paths, got {each!r}")
        source, target = (tidy(side) for side in (reversed(each) if reverse else each))
        if source and target:
            pairs.append(Pair(source, target, number))
        else:
            skipped.setdefault("empty source or target", []).append(number)
    if not pairs:
        raise ValueError(f"pairs: expected at least one pair of texts, got {len(texts)} without any that can be used")
    return Corpus(pairs, len(texts), skipped, "pairs")
