"""Texts to token ids, word by word.

A tidied text is encoded as its words are, one after the other, because no token of a vocabulary reaches over a blank
(text/vocabulary.py). Most words of a corpus occur again and again, so that nearly all of the work is to look them up:

    encode(text) = concat of encode(word) for word in text.split(" ")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.corpora.arrays import Ragged
from regard.corpora.workers import Message
from regard.text.vocabulary import Vocabulary

ENCODE = "encode"  # the job of a worker that encodes rows of stored texts
MAX_WORDS = 200_000  # words after which a new generation of them begins; two are remembered: about 80 MB
SIDES = ("source", "target")


def token_dtype(vocabulary_size: int) -> type[np.uint16] | type[np.uint32]:
    """Return the smallest type for the token ids of a vocabulary."""
    return np.uint16 if vocabulary_size <= 1 << 16 else np.uint32


class WordEncoder:
    """Encodes texts by looking up their words, each of which is encoded once."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._dtype = vocabulary, token_dtype(len(vocabulary))
        self._tokens: dict[str, bytes] = {}  # the token ids of each word
        self._older: dict[str, bytes] = {}  # those of the generation before

    def __call__(self, texts: Sequence[str]) -> tuple[bytes, NDArray[np.int64]]:
        """Return the token ids of all texts, concatenated, and the number of each text's."""
        words = [text.split(" ") for text in texts]
        self._learn(set[str]().union(*words))
        rows = [b"".join(map(self._tokens.__getitem__, each)) for each in words]
        return b"".join(rows), np.array([len(row) for row in rows], np.int64) // np.dtype(self._dtype).itemsize

    def _learn(self, words: set[str]) -> None:
        """Remember the tokens of words, of which those that are not remembered are encoded."""
        if len(self._tokens) > MAX_WORDS:  # words that do not occur again are forgotten
            self._tokens, self._older = {}, self._tokens
        missing = words.difference(self._tokens)
        self._tokens |= {word: self._older[word] for word in missing.intersection(self._older)}
        new = list(missing.difference(self._older))
        for word, ids in zip(new, self._vocabulary.encode_all(new), strict=True):
            self._tokens[word] = np.array(ids, self._dtype).tobytes()


class BlockEncoder:
    """Encodes rows of stored texts: what a worker does with the jobs of `encoding_job`."""

    def __init__(self) -> None:
        self._opened: tuple[str, str] | None = None
        self._texts: list[Ragged] = []
        self._encoders: list[WordEncoder] = []

    def __call__(self, job: Message) -> Message:
        header = job.header
        self._open(header["texts"], header["vocabulary"])
        parts: list[bytes] = []
        for texts, encode in zip(self._texts, self._encoders, strict=True):
            tokens, counts = encode(stored_texts(texts, header["first"], header["last"]))
            parts += [tokens, counts.tobytes()]
        return Message({}, parts)

    def _open(self, texts: str, vocabulary: str) -> None:
        if self._opened == (texts, vocabulary):
            return
        self._opened = texts, vocabulary
        self._texts = [Ragged.open(Path(texts), side, np.uint8) for side in SIDES]
        source, target = read_vocabularies(Path(vocabulary))
        first = WordEncoder(source)
        self._encoders = [first, first if source is target else WordEncoder(target)]


def encoding_job(texts: Path, vocabulary: Path, rows: slice) -> Message:
    """Return the job of encoding rows of stored texts with stored vocabularies."""
    where = {"texts": str(texts), "vocabulary": str(vocabulary)}
    return Message({"job": ENCODE, "first": rows.start, "last": rows.stop, **where})


def stored_texts(texts: Ragged, first: int, last: int) -> list[str]:
    """Return consecutive texts, each of which is stored with a \\n at its end, which no tidied text contains."""
    stored = texts.values[texts.ends[first] : texts.ends[last]].tobytes()
    return stored.decode().split("\n")[:-1]


def write_vocabularies(folder: Path, source: Vocabulary, target: Vocabulary) -> None:
    """Write two vocabularies, or the one for both sides."""
    for side, vocabulary in zip(SIDES, (source, target), strict=True):
        if side == SIDES[0] or target is not source:
            (folder / f"{side}.json").write_text(vocabulary.to_json(), encoding="utf-8")


def read_vocabularies(folder: Path) -> tuple[Vocabulary, Vocabulary]:
    """Read what `write_vocabularies` wrote."""
    source = Vocabulary.from_json((folder / f"{SIDES[0]}.json").read_text(encoding="utf-8"))
    other = folder / f"{SIDES[1]}.json"
    return source, Vocabulary.from_json(other.read_text(encoding="utf-8")) if other.is_file() else source
