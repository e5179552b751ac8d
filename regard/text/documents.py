"""Texts as a classifier reads them: words with their spellings, in sentences, and batches of such texts.

A vocabulary by words is the usual one: a classifier never has to write, so a word it does not know is no trouble as
long as its spelling tells something. B texts, S words, N sentences, U different words in a batch, G runs of letters.
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
LONGEST_SENTENCE = 80
"""words, after which one ends even where nothing says so"""
IGNORED = -100
"""a label that counts nothing in torch's cross-entropy"""
EVEN = 16
"""texts have a multiple of so many words if batches come in few shapes: kernels are compiled anew for other sizes"""
WORDS, RUNS = 256, 64
"""different words, and runs of letters in one, for which there is always room if batches come in few shapes"""


class Document(NamedTuple):
    """A text that was read."""

    pieces: list[Piece]
    words: list[str]
    """of each piece, in lower case"""
    sentences: list[int]
    """how many pieces each has"""


class Reader:
    """text, tidied → Document"""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        signs = {*SPECIAL, *BYTES, UNKNOWN}
        names = (name for name in vocabulary.tokens if name not in signs)
        self.spelling = Spelling({name.replace(WORD_BEGINS, "").lower() for name in names})

    def __call__(self, tidied: str) -> Document:
        pieces = self.vocabulary.pieces(tidied)
        words = [tidied[piece.start : piece.end].lower() for piece in pieces]
        return Document(pieces, words, _sentences(words))


def _sentences(words: Sequence[str]) -> list[int]:
    """Lengths: a sentence ends behind its mark, and all further marks."""
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
    source: Tensor
    """token numbers [B, S], 0 behind the end"""
    lengths: Tensor
    """[B], at least 1; on the CPU, where an RNN needs them, or with the others, if they come in few shapes"""
    spelled: Tensor
    """[U, G]: the runs of letters of each different word, 0 behind the last; the first has none"""
    which: Tensor
    """[B, S]: which of them stands there"""
    sentences: Tensor
    """[B, N]: how many words each has, 0 behind the last"""
    tokens: int
    """words"""
    labels: Tensor | None = None
    """[B]; IGNORED where the row only fills up"""
    fold: Tensor | None = None
    """[B]: of training texts, the part of the data that they belong to"""
    ratios: Tensor | None = None
    """[B, S, 2C]: of training texts, how telling each word is by the counts of other texts"""

    @cached_property
    def real(self) -> Tensor:
        """bool [B, S]: a word, no padding"""
        places = torch.arange(self.source.shape[1], device=self.lengths.device)
        return (places < self.lengths[:, None]).to(self.source.device, non_blocking=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, S, U, G)"""
        return *self.source.shape, *self.spelled.shape

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        spelling: Spelling,
        labels: Sequence[int] | None = None,
        fold: Tensor | None = None,
    ) -> DocumentBatch:
        """A text without words is one sign that means nothing, so that there is something to look at."""
        numbers = {"": 0}
        which = [[numbers.setdefault(word, len(numbers)) for word in each.words] or [0] for each in documents]
        lengths = [len(row) for row in which]
        return cls(
            padded([[piece.token for piece in each.pieces] or [PAD] for each in documents]),
            torch.tensor(lengths),
            padded([spelling(word) or (PAD,) for word in numbers]),
            padded(which),
            padded([each.sentences or [1] for each in documents]),
            sum(lengths),
            None if labels is None else torch.tensor(labels),
            fold,
        )

    def in_few_shapes(self) -> DocumentBatch:
        """Return the batch with B, S, U and G rounded up: what is computed of one can be recorded, and played back.

        Rows that fill up are texts without words, whose labels are ignored. Each text counts as one sentence.
        """
        rows, size = (rounded(length) for length in self.source.shape)
        size = -(-size // EVEN) * EVEN
        words, runs = (coarse(length, least) for length, least in zip(self.spelled.shape, (WORDS, RUNS), strict=True))
        lengths = _grown(self.lengths, rows, fill=1)
        return replace(
            self,
            source=_grown(self.source, rows, size, fill=PAD),
            lengths=lengths,
            spelled=_grown(self.spelled, words, runs, fill=PAD),
            which=_grown(self.which, rows, size, fill=0),
            sentences=lengths[:, None],
            labels=None if self.labels is None else _grown(self.labels, rows, fill=IGNORED),
            fold=None if self.fold is None else _grown(self.fold, rows, fill=0),
        )

    def to(self, device: torch.device, lengths: bool = False) -> DocumentBatch:
        """Return the batch on the device; its lengths stay on the CPU unless they are to go, too.

        To a GPU all goes in one copy, which is not waited for.
        """
        names = [field.name for field in fields(self) if isinstance(getattr(self, field.name), Tensor)]
        names = [name for name in names if lengths or name != "lengths"]
        parts = [getattr(self, name) for name in names]
        sent: dict[str, Any] = dict(zip(names, _sent(parts, device), strict=True))
        return replace(self, **sent)


def _sent(parts: Sequence[Tensor], device: torch.device) -> Sequence[Tensor]:
    """Whole numbers by way of one piece of pinned memory, if they are to go to a GPU."""
    if device.type != "cuda" or any(part.is_cuda or part.dtype is not torch.int64 for part in parts):
        return [part.to(device) for part in parts]
    together = torch.empty(sum(part.numel() for part in parts), dtype=torch.int64, pin_memory=True)
    torch.cat([part.flatten() for part in parts], out=together)
    sent = together.to(device, non_blocking=True).split([part.numel() for part in parts])
    return [each.view(part.shape) for each, part in zip(sent, parts, strict=True)]


def _grown(table: Tensor, *sizes: int, fill: int) -> Tensor:
    """Larger, with `fill` behind what there was."""
    found = table.new_full(sizes, fill)
    found[tuple(slice(size) for size in table.shape)] = table
    return found


def coarse(size: int, least: int) -> int:
    """Up to a power of 2, and to no less than `least`."""
    return max(least, 1 << max(0, size - 1).bit_length())
