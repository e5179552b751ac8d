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

from regard.text.batches import padded
from regard.text.spelling import Spelling
from regard.text.vocabulary import BYTES, PAD, SPECIAL, UNKNOWN, WORD_BEGINS, Piece, Vocabulary

SENTENCE_ENDS = frozenset(".?!…।。？！")
LONGEST_SENTENCE = 80
"""words, after which one ends even where nothing says so"""


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
    """[B], at least 1; on the CPU"""
    spelled: Tensor
    """[U, G]: the runs of letters of each different word, 0 behind the last; the first has none"""
    which: Tensor
    """[B, S]: which of them stands there"""
    sentences: Tensor
    """[B, N]: how many words each has, 0 behind the last"""
    labels: Tensor | None = None
    """[B]"""
    ratios: Tensor | None = None
    """[B, S, 2C]: of training texts, how telling each word is by the counts of other texts"""

    @property
    def tokens(self) -> int:
        """words"""
        return int(self.lengths.sum())

    @cached_property
    def real(self) -> Tensor:
        """bool [B, S]: a word, no padding"""
        places = torch.arange(self.source.shape[1])
        return (places < self.lengths[:, None]).to(self.source.device)

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        spelling: Spelling,
        labels: Sequence[int] | None = None,
    ) -> DocumentBatch:
        """A text without words is one sign that means nothing, so that there is something to look at."""
        numbers = {"": 0}
        which = [[numbers.setdefault(word, len(numbers)) for word in each.words] or [0] for each in documents]
        return cls(
            padded([[piece.token for piece in each.pieces] or [PAD] for each in documents]),
            torch.tensor([len(row) for row in which]),
            padded([spelling(word) or (PAD,) for word in numbers]),
            padded(which),
            padded([each.sentences or [1] for each in documents]),
            None if labels is None else torch.tensor(labels),
        )

    def to(self, device: torch.device) -> DocumentBatch:
        """There, but for the lengths."""
        names = [
            field.name for field in fields(self) if field.name != "lengths" and getattr(self, field.name) is not None
        ]
        sent: dict[str, Any] = {name: getattr(self, name).to(device) for name in names}
        return replace(self, **sent)
