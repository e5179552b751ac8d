"""The token ids of stored texts, in memory-mapped files: made once by all cores, then reused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.corpora.arrays import Ints, Ragged, RaggedWriter, spans
from regard.corpora.cache import Cache, read_manifest, write_manifest
from regard.corpora.encoding import SIDES, encoding_job, read_vocabularies, token_dtype, write_vocabularies
from regard.corpora.texts import Advance, StoredTexts
from regard.corpora.workers import Workers
from regard.text.vocabulary import Vocabulary

BLOCK_ROWS = 5_000

VocabularyPair = tuple[Vocabulary, Vocabulary]


@dataclass(frozen=True)
class StoredTokens:
    """The token ids of both sides, without start and end tokens."""

    source: Ragged
    target: Ragged

    def lengths(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of tokens of both sides."""
        return self.source.lengths(rows), self.target.lengths(rows)

    @classmethod
    def open(cls, entry: Path) -> StoredTokens:
        """Map the tokens of an entry of the cache."""
        facts = read_manifest(entry)
        try:
            sides = [Ragged.open(entry, side, facts[side]) for side in SIDES]
            complete = all(len(side) == facts["pairs"] and side.ends[-1] == len(side.values) for side in sides)
        except (OSError, KeyError, ValueError, TypeError):
            complete = False
        if not complete:
            raise ValueError(f"{entry}: damaged; delete it, and it will be made again")
        return cls(*sides)


def stored_vocabularies(cache: Cache, entry: Path, learn: Callable[[], VocabularyPair]) -> VocabularyPair:
    """Return the vocabularies of an entry of the cache, which `learn` makes if they are not there."""
    if not cache.has(entry):
        with cache.building(entry) as folder:
            write_vocabularies(folder, *learn())
            write_manifest(folder, {})
    return read_vocabularies(entry)


def store_tokens(texts: StoredTexts, vocabulary: Path, cache: Cache, advance: Advance) -> StoredTokens:
    """Return the tokens of the texts, with the vocabularies of an entry of the cache: from the cache if they are there,
    otherwise made by all cores."""
    vocabularies = read_vocabularies(vocabulary)
    digest = hashlib.sha256("".join(each.to_json() for each in vocabularies).encode()).hexdigest()
    entry = cache.entry("tokens", texts.folder.name, digest)
    if not cache.has(entry):
        with cache.building(entry) as folder, Workers() as workers:
            dtypes = [np.dtype(token_dtype(len(each))) for each in vocabularies]
            _write_tokens(texts, vocabulary, dtypes, folder, workers, advance)
            facts = {side: dtype.name for side, dtype in zip(SIDES, dtypes, strict=True)}
            write_manifest(folder, {"pairs": len(texts), **facts})
    return StoredTokens.open(entry)


def _write_tokens(
    texts: StoredTexts,
    vocabulary: Path,
    dtypes: Sequence[np.dtype[Any]],
    folder: Path,
    workers: Workers,
    advance: Advance,
) -> None:
    """Tokenize the texts into an entry."""
    writers = [RaggedWriter(folder, side) for side in SIDES]
    blocks = list(spans(len(texts), BLOCK_ROWS))
    advance(0, len(texts), f"tokenizing {texts.name}")
    answers = workers.map(encoding_job(texts.folder, vocabulary, rows) for rows in blocks)
    for rows, answer in zip(blocks, answers, strict=True):
        parts = zip(writers, dtypes, answer.parts[::2], answer.parts[1::2], strict=True)
        for writer, dtype, values, lengths in parts:
            writer.append(values, np.frombuffer(lengths, np.int64), dtype.itemsize)
        advance(rows.stop, len(texts), f"tokenizing {texts.name}")
    for writer in writers:
        writer.close()
