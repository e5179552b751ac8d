"""Translators from corpora that are too large to be held in memory (docs/corpora.md).

The rules are those of small corpora. What needs all texts at once is learned from a sample: vocabularies, word pairs
and the maximum length of outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from regard.config.folder import Vocabularies
from regard.config.recipe import Recipe
from regard.corpora.arrays import spans
from regard.corpora.blocks import SourceFiles, pair_key, source_rank
from regard.corpora.cache import Cache
from regard.corpora.corpus import StoredPairs, TokenizedPairs, listed_part
from regard.corpora.examples import StoredExamples, StoredPart
from regard.corpora.selection import select
from regard.corpora.texts import store_texts, text_bytes
from regard.corpora.tokens import VocabularyPair, store_tokens, stored_vocabularies
from regard.models.building import build
from regard.search.hypothesis import LengthLimit
from regard.tasks.spec import Given, TrainingData
from regard.tasks.text_data import Pairs, described, file_paths, read_dev, show_leaked
from regard.tasks.translation.task import (
    TranslationTask,
    encoded_lengths,
    learn_vocabularies,
    mean_words,
    shared_letters,
    variety_of,
    within_tokens,
)
from regard.tasks.translation.word_pairs import word_pairs
from regard.text.lengths import TokenLimit, within_characters
from regard.text.pairs import Corpus, Pair
from regard.text.sentences import several_sentences
from regard.text.weighted import Weighted, weighted_parts
from regard.training.progress import Screen

LARGE_BYTES = 100_000_000
"""bytes of text from which on a corpus is stored in files; in memory, it takes about 15 times as many"""
SAMPLE = 500_000  # pairs from which vocabularies are learned


def is_large(given: Given) -> bool:
    """Return whether the data are files of so much text that they are stored in the cache."""
    files = [file_paths(part.data) for part in weighted_parts(given.data) or [Weighted(given.data)]]
    paths = [path for part in files if part is not None for path in part]
    if given.cache is None or None in files or not all(path.exists() for path in paths):
        return False  # what cannot be read is reported by those who read it
    return text_bytes(paths) > LARGE_BYTES


def read_large(
    given: Given, read: Callable[[Sequence[Path]], Corpus], max_characters: int | None, screen: Screen
) -> TrainingData[Pairs]:
    """Store the training pairs in the cache, and select those for training, as `read_text_data` does in memory."""
    assert given.cache is not None
    cache, parts = Cache(given.cache), weighted_parts(given.data)
    advance = partial(screen.advance, unit="line")
    texts = []
    for part in parts or [Weighted(given.data)]:
        files = tuple(file_paths(part.data) or ())
        texts.append(store_texts(SourceFiles(files, given.reverse, given.languages), cache, advance))
    screen.status("looking for duplicates")
    weights = [1.0] * len(texts) if parts is None else [part.weight for part in parts]
    dev, dev_digest = (None, "") if given.dev is None else read_dev(given, read, max_characters or 0, screen)
    selection = select(texts, weights, cache.folder, max_characters, dev)
    for report in selection.reports:
        screen.say(report)
    show_leaked(selection.leaked, screen)
    train = StoredPairs(selection, cache, advance, screen.say)
    screen.say(f"{len(train):,} pairs for training, {len(selection.dev):,} for validation, in {cache.folder}")
    name, digest = described(parts, [each.name for each in texts], [each.digest for each in texts])
    lines, limit = sum(each.line_count for each in texts), selection.max_characters
    return TrainingData(train, selection.dev, name, lines, digest, dev_digest, limit)


def with_extra_pairs(data: TrainingData[Pairs], extra: Corpus, screen: Screen) -> TrainingData[Pairs]:
    """Return the data with further training pairs, as `with_extra` does in memory."""
    assert isinstance(data.train, StoredPairs) and data.max_characters is not None
    pairs = within_characters(extra, data.max_characters).pairs
    keys = np.array([int.from_bytes(pair_key(pair.source.encode(), pair.target.encode())) for pair in pairs], np.uint64)
    ranks = np.array([int.from_bytes(source_rank(pair.source)) for pair in pairs], np.uint64)
    known = np.isin(ranks, [int.from_bytes(source_rank(pair.source)) for pair in data.dev])
    for texts in data.train.selection.texts:
        for span in spans(len(texts)):
            known |= np.isin(keys, texts.keys[span])
    added = [pair for pair, is_known in zip(pairs, known.tolist(), strict=True) if not is_known]
    screen.say(f"{len(added):,} further pairs for training, of {len(extra.pairs):,}")
    return replace(data, extra=added, extra_digest=extra.digest)


def large_task(data: TrainingData[Pairs], recipe: Recipe, seed: int) -> TranslationTask:
    """Return the task of a large corpus, as `TranslationTask.of` does for one in memory."""
    train, dev = data.train, data.dev
    assert isinstance(train, StoredPairs)
    for key in ("guided_attention", "glossary"):
        if getattr(recipe.training, key):
            reason = f"expected 0 for a corpus of more than {LARGE_BYTES / 1e6:.0f} MB, whose words cannot be aligned"
            raise ValueError(f"training.{key}: {reason}; got {getattr(recipe.training, key)}")
    rows = train.sample(SAMPLE)
    sample = train.pairs(rows)
    batch_given = recipe.training.batch_given
    recipe = recipe.fitted(len(train), mean_words(sample), shared_letters(sample))
    entry, (source, target) = _vocabularies(data, train, sample, recipe)
    vocabularies = Vocabularies(source, target)
    tokens = [store_tokens(texts, entry, train.cache, train.advance) for texts in train.selection.texts]
    tokenized = TokenizedPairs(train, tokens, recipe.training.max_tokens)
    recipe = replace(recipe, training=replace(recipe.training, max_tokens=tokenized.limit))
    within = TokenLimit.of([(sample[0], 0)], encoded_lengths(dev, vocabularies), tokenized.limit)
    lengths = np.stack(tokenized.lengths(rows), 1)
    inside = lengths.max(1) <= tokenized.limit
    single = word_pairs(
        [pair for pair, fits in zip(sample, inside.tolist(), strict=True) if fits],
        vocabularies,
        round(recipe.training.word_pairs * len(train)),
    )
    listed = listed_part([*within_tokens(data.extra or (), vocabularies, tokenized.limit), *single], source, target)
    parts = [StoredPart(*both) for both in zip(train.selection.texts, tokens, strict=True)]
    skipped = [*tokenized.skipped(), *within.skipped]
    order = tokenized.order(listed)
    examples = StoredExamples([*parts, listed], order, (source, target), variety_of(recipe), seed)
    torch.manual_seed(seed)
    model = build(recipe.model, len(source), len(target))
    limit = LengthLimit.learned([(first + 1, second) for first, second in lengths[inside].tolist()])
    return TranslationTask(
        recipe,
        vocabularies,
        examples,
        model,
        limit,
        [dev[place] for place in within.dev],
        seed,
        skipped=skipped,
        batch_given=batch_given,
        longest_source=tokenized.longest_source(),
        several_sentences=several_sentences(pair.source for pair in sample),
        word_pairs=len(single),
    )


def _vocabularies(
    data: TrainingData[Pairs], train: StoredPairs, sample: Sequence[Pair], recipe: Recipe
) -> tuple[Path, VocabularyPair]:
    """Return the entry of the cache that has the vocabularies of the sample, and these."""
    selection = train.selection
    depends = [texts.folder.name for texts in selection.texts], selection.weights, data.max_characters, data.dev_digest
    entry = train.cache.entry("vocabulary", *depends, SAMPLE, asdict(recipe.vocabulary))

    def learn() -> VocabularyPair:
        learned = learn_vocabularies(sample, recipe, placeholders=False)
        return learned.source, learned.target

    if len(sample) < len(train):
        train.say(f"the vocabulary is learned from a sample of {len(sample):,} pairs")
    return entry, stored_vocabularies(train.cache, entry, learn)
