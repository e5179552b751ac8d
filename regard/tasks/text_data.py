"""The text data of a training: pairs or labelled texts, from files or Python, without over-long lines, and dev."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.tasks.spec import Given, TrainingData
from regard.text.lengths import character_limit, within_characters
from regard.text.normal import match_key, tidy
from regard.text.pairs import Corpus, Pair
from regard.text.split import leaked_sources, split
from regard.text.weighted import Weighted, weighted_parts
from regard.training.progress import Screen

Pairs = Sequence[Pair]


def read_text_data(
    given: Given,
    read: Callable[[Sequence[Path]], Corpus],
    summary: Callable[[Pairs, Pairs], str],
    max_characters: int | None,
    screen: Screen,
) -> TrainingData[Pairs]:
    """Read the training pairs, and the dev part if it is given; otherwise set some of them aside, of weighted data some
    of the first part.

    `max_characters` None: chosen from the data. A dev part that is given may have longer lines, if its own lengths
    allow them.
    """
    parts = weighted_parts(given.data)
    corpora = [read_corpus(part.data, given.reverse, read) for part in parts or [Weighted(given.data)]]
    limit = max_characters or character_limit([pair for corpus in corpora for pair in corpus.pairs])
    corpora = [within_characters(corpus, limit) for corpus in corpora]
    for corpus in corpora:
        _show_skipped(corpus, screen)
    weights, dev_digest = None, ""  # type: Sequence[float] | None, str
    if given.dev is None:
        train, dev = split(corpora[0].pairs)  # type: Pairs, Pairs
    else:
        train = corpora[0].pairs
        dev, dev_digest = read_dev(given, read, limit, screen)
    if parts is not None:
        dev_sources = {match_key(pair.source) for pair in dev} if given.dev is None else set()
        train, weights = _joined([train, *(corpus.pairs for corpus in corpora[1:])], parts, dev_sources)
    if given.dev is not None:
        show_leaked(leaked_sources(train, dev), screen)
    screen.say(summary(train, dev))
    name, digest = described(parts, [corpus.name for corpus in corpora], [corpus.digest for corpus in corpora])
    lines = sum(corpus.lines for corpus in corpora)
    return TrainingData(train, dev, name, lines, digest, dev_digest, limit, weights=weights)


def read_dev(
    given: Given, read: Callable[[Sequence[Path]], Corpus], limit: int, screen: Screen
) -> tuple[list[Pair], str]:
    """Read the dev part that was given; return it with its digest."""
    corpus = read_corpus(given.dev, given.reverse, read)
    corpus = within_characters(corpus, max(limit, character_limit(corpus.pairs)))
    _show_skipped(corpus, screen)
    return corpus.pairs, corpus.digest


def show_leaked(leaked: int, screen: Screen) -> None:
    """Tell the user how many sources of a dev part that was given also occur in training."""
    if leaked:
        screen.say(f"dev: {leaked:,} of its sources also occur in training: scores on it will flatter")


def described(parts: Sequence[Weighted] | None, names: Sequence[str], digests: Sequence[str]) -> tuple[str, str]:
    """Return the name and the digest of data from several sources; those of the only one, if it has no weight."""
    if parts is None:
        return names[0], digests[0]
    name = ", ".join(f"{name}:{part.weight:g}" for name, part in zip(names, parts, strict=True))
    text = "".join(f"{digest}:{part.weight!r}\n" for digest, part in zip(digests, parts, strict=True))
    return name, hashlib.sha256(text.encode()).hexdigest()


def _joined(
    trains: Sequence[Pairs], parts: Sequence[Weighted], dev_sources: set[str]
) -> tuple[list[Pair], list[float]]:
    """Return the pairs of all parts with their weights. A pair that several parts have counts once, with the largest
    weight; pairs of further parts with a source of dev are left out."""
    seen: set[tuple[str, str]] = set()
    chosen: list[list[Pair]] = [[] for _ in parts]
    for number in sorted(range(len(parts)), key=lambda number: -parts[number].weight):
        for pair in trains[number]:
            sides = pair.source, pair.target
            if sides not in seen and not (number and dev_sources and match_key(pair.source) in dev_sources):
                seen.add(sides)
                chosen[number].append(pair)
    weights = [part.weight for part, pairs in zip(parts, chosen, strict=True) for _ in pairs]
    return [pair for pairs in chosen for pair in pairs], weights


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
    files = file_paths(pairs)
    if files is not None:
        return read(files)
    assert isinstance(pairs, Sequence)
    return corpus_of(pairs, reverse)


def file_paths(pairs: Any) -> list[Path] | None:
    """Return the paths, if the data are given as one or several of them."""
    parts = [pairs] if isinstance(pairs, (str, Path)) else list(pairs) if isinstance(pairs, Sequence) else []
    if parts and all(isinstance(each, (str, Path)) for each in parts):
        return [Path(str(each)) for each in parts]
    return None


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
