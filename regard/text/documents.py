"""Texts as a classifier reads them: words with their character n-grams, in sentences, and batches of such texts.

The usual vocabulary is one of words: a classifier generates no text, so an unknown word does little harm as long as its
n-grams are informative. Shapes: B texts, S words, N sentences, U distinct words in a batch, G n-grams of a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.text.batches import padded, rounded
from regard.text.spelling import Spelling
from regard.text.vocabulary import BYTES, PAD, SPECIAL, UNKNOWN, WORD_BEGINS, Piece, Vocabulary

SENTENCE_ENDS = frozenset(".?!…।。？！")
LONGEST_SENTENCE = 80  # the number of words after which a sentence ends even without punctuation
IGNORED = -100  # the label that torch's cross-entropy ignores
LENGTH_MULTIPLE = 16
"""S is a multiple of this if batches come in few shapes: kernels are compiled again for other sizes"""
MIN_WORDS, MIN_NGRAMS = 256, 64  # the minimum of U and of G if batches come in few shapes


class Document(NamedTuple):
    """A text split into words and sentences."""

    pieces: list[Piece]
    words: list[str]  # the text of each piece, in lower case
    sentences: list[int]  # the number of pieces of each sentence


class Reader:
    """Splits tidied texts into Documents."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        reserved = {*SPECIAL, *BYTES, UNKNOWN}
        names = (name for name in vocabulary.tokens if name not in reserved)
        self.spelling = Spelling({name.replace(WORD_BEGINS, "").lower() for name in names})

    def __call__(self, tidied: str) -> Document:
        pieces = self.vocabulary.pieces(tidied)
        words = [tidied[piece.start : piece.end].lower() for piece in pieces]
        return Document(pieces, words, _sentences(words))


def _sentences(words: Sequence[str]) -> list[int]:
    """Return the lengths of the sentences; a sentence ends after its final punctuation mark or marks."""
    lengths: list[int] = []
    ended = True
    for word in words:
        ends = word[-1:] in SENTENCE_ENDS
        if (ended and not ends) or not lengths or lengths[-1] >= LONGEST_SENTENCE:
            lengths.append(0)
        lengths[-1] += 1
        ended = ends
    return lengths


@dataclass(frozen=True)
class DocumentBatch:
    """A batch of B texts."""

    source: Tensor  # [B, S]: token ids, padded with 0
    lengths: Tensor  # [B], at least 1; on the CPU, where an RNN needs them, or, in few shapes, on the device
    ngrams: Tensor  # [U, G]: the n-gram ids of each distinct word, padded with 0; word 0 is empty and has none
    word_indices: Tensor  # [B, S]: the index of each word in `ngrams`
    sentences: Tensor  # [B, N]: the number of words of each sentence, padded with 0
    tokens: int  # the number of words
    labels: Tensor | None = None  # [B]; IGNORED in rows that only fill up
    fold: Tensor | None = None  # [B]: for training texts, the fold of the data that each belongs to
    soft_labels: Tensor | None = None  # [B, C]: distributions over the labels; 0 in rows that only fill up
    ratios: Tensor | None = None  # [B, S, 2C]: for training, how informative each word is by counts of the other folds

    @cached_property
    def attention_mask(self) -> Tensor:
        """bool [B, S]: True for words, False for padding"""
        positions = torch.arange(self.source.shape[1], device=self.lengths.device)
        return (positions < self.lengths[:, None]).to(self.source.device, non_blocking=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, S, U, G)"""
        return *self.source.shape, *self.ngrams.shape

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        spelling: Spelling,
        labels: Sequence[int] | None = None,
        fold: Tensor | None = None,
        soft_labels: Tensor | None = None,
    ) -> DocumentBatch:
        """Return the batch of the documents. An empty one becomes one PAD token, so that attention has a position."""
        word_ids = {"": 0}
        word_indices = [[word_ids.setdefault(word, len(word_ids)) for word in each.words] or [0] for each in documents]
        lengths = [len(row) for row in word_indices]
        return cls(
            padded([[piece.token for piece in each.pieces] or [PAD] for each in documents]),
            torch.tensor(lengths),
            padded([spelling(word) or (PAD,) for word in word_ids]),
            padded(word_indices),
            padded([each.sentences or [1] for each in documents]),
            sum(lengths),
            None if labels is None else torch.tensor(labels),
            fold,
            soft_labels,
        )

    def in_few_shapes(self) -> DocumentBatch:
        """Return the batch with B, S, U and G rounded up, so that a captured CUDA graph can be replayed for others.

        Rows that only fill up are empty texts whose labels are ignored. Each text counts as one sentence.
        """
        rows, size = (rounded(length) for length in self.source.shape)
        size = -(-size // LENGTH_MULTIPLE) * LENGTH_MULTIPLE
        word_count, ngram_count = (
            max(minimum, 1 << max(0, length - 1).bit_length())  # a power of 2
            for length, minimum in zip(self.ngrams.shape, (MIN_WORDS, MIN_NGRAMS), strict=True)
        )
        lengths, soft = _pad_to(self.lengths, rows, fill=1), self.soft_labels
        return replace(
            self,
            source=_pad_to(self.source, rows, size, fill=PAD),
            lengths=lengths,
            ngrams=_pad_to(self.ngrams, word_count, ngram_count, fill=PAD),
            word_indices=_pad_to(self.word_indices, rows, size, fill=0),
            sentences=lengths[:, None],
            labels=None if self.labels is None else _pad_to(self.labels, rows, fill=IGNORED),
            fold=None if self.fold is None else _pad_to(self.fold, rows, fill=0),
            soft_labels=None if soft is None else _pad_to(soft, rows, soft.shape[1], fill=0),
        )

    def to(self, device: torch.device, lengths: bool = False) -> DocumentBatch:
        """Return the batch on the device, with `lengths` also its lengths; to a GPU, in one asynchronous copy."""
        names = [field.name for field in fields(self) if isinstance(getattr(self, field.name), Tensor)]
        names = [name for name in names if lengths or name != "lengths"]
        parts = [getattr(self, name) for name in names]
        moved: dict[str, Any] = dict(zip(names, _to_device(parts, device), strict=True))
        return replace(self, **moved)


def _to_device(parts: Sequence[Tensor], device: torch.device) -> Sequence[Tensor]:
    """Move tensors to the device; to a GPU from pinned memory, int64 tensors by way of one buffer."""
    if device.type != "cuda" or any(part.is_cuda for part in parts):
        return [part.to(device) for part in parts]
    whole = [part for part in parts if part.dtype is torch.int64]
    pinned = torch.empty(sum(part.numel() for part in whole), dtype=torch.int64, pin_memory=True)
    torch.cat([part.flatten() for part in whole], out=pinned)
    moved = iter(pinned.to(device, non_blocking=True).split([part.numel() for part in whole]))
    return [
        next(moved).view(part.shape) if part.dtype is torch.int64 else part.pin_memory().to(device, non_blocking=True)
        for part in parts
    ]


def _pad_to(table: Tensor, *sizes: int, fill: int) -> Tensor:
    """Return the tensor padded with `fill` at the end of each dimension to `sizes`."""
    padded_table = table.new_full(sizes, fill)
    padded_table[tuple(slice(size) for size in table.shape)] = table
    return padded_table
