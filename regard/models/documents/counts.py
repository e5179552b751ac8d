"""How telling a word is, counted: of each label, how much more often its texts have the word than others do.

    r_c(w) = log (n_c(w) + 1) / (N_c + 2)  −  log (n_¬c(w) + 1) / (N_¬c + 2)

n_c(w) is the number of texts of label c with the word, N_c that of all its texts (Wang & Manning 2012). The same for
two words side by side. Nothing is learned here but by counting. A training text must not be told its own label: it is
given the ratios of counts without its part of the data (`Folds`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.models.documents.words import hashed
from regard.text.documents import Document, DocumentBatch

MOST, ROOM = 2**17, 2**20
"""places of the hash for pairs, and numbers in its table"""
FOLDS = 10


class Counts(nn.Module):
    """batch → ratios [B, S, 2C]: of each word, and of it with the one before it"""

    def __init__(self, vocabulary: int, labels: int) -> None:
        super().__init__()
        self.features = 2 * labels
        places = max(1, min(MOST, ROOM // labels))
        self.words, self.pairs, self.texts = (
            nn.Parameter(torch.zeros(size, labels), requires_grad=False) for size in (vocabulary, places, 1)
        )

    def forward(self, batch: DocumentBatch) -> Tensor:
        return self.ratios(batch.source) if batch.ratios is None else batch.ratios

    def ratios(self, source: Tensor) -> Tensor:
        """source [B, S] → [B, S, 2C]"""
        words, pairs = self.words[source], self.pairs[self.places(source)]
        return torch.cat([_ratio(words, self.texts), _ratio(pairs, self.texts)], -1)

    def places(self, source: Tensor) -> Tensor:
        """Of each word with the one before it, in the table of pairs."""
        return hashed(source, len(self.pairs))

    def count(self, documents: Sequence[Document], labels: Sequence[int]) -> None:
        """Add texts with their labels; a word counts once a text."""
        gold = torch.tensor(labels, dtype=torch.long)
        self.texts.view(-1).index_add_(0, gold, torch.ones(len(gold)))
        sources = [torch.tensor([piece.token for piece in each.pieces], dtype=torch.long) for each in documents]
        owners = torch.repeat_interleave(torch.arange(len(sources)), torch.tensor(list(map(len, sources))))
        if not len(owners):
            return
        places = torch.cat([self.places(source[None])[0] for source in sources])
        for table, each in ((self.words, torch.cat(sources)), (self.pairs, places)):
            once = (owners * len(table) + each).unique()
            at = once % len(table) * table.shape[1] + gold[once // len(table)]
            table.view(-1).index_add_(0, at, torch.ones(len(at)))


class Folds:
    """The ratios that each of ten parts of the training texts is given: of the counts of the other nine.

    All counts together become those of the model. The tables lie where the texts do that are asked about last, so
    that a GPU looks up by itself.
    """

    def __init__(self, counts: Counts, documents: Sequence[Document], labels: Sequence[int]) -> None:
        parts = [Counts(len(counts.words), counts.words.shape[1]) for _ in range(FOLDS)]
        for fold, part in enumerate(parts):
            part.count(documents[fold::FOLDS], labels[fold::FOLDS])
            for mine, its in zip(counts.parameters(), part.parameters(), strict=True):
                mine.add_(its)
        tables = []
        for part in parts:
            words, pairs, texts = (a - b for a, b in zip(counts.parameters(), part.parameters(), strict=True))
            tables.append((_ratio(words, texts), _ratio(pairs, texts)))
        self._words, self._pairs = (torch.stack(each) for each in zip(*tables, strict=True))  # [folds, …, C]

    @staticmethod
    def of(rows: Sequence[int]) -> Tensor:
        """Return the part that each training text belongs to, by its number: [B]."""
        return torch.tensor(rows) % FOLDS

    def ratios(self, fold: Tensor, source: Tensor) -> Tensor:
        """fold [B] and source [B, S] of training texts → [B, S, 2C]"""
        if self._words.device != source.device:
            self._words, self._pairs = self._words.to(source.device), self._pairs.to(source.device)
        places, fold = hashed(source, self._pairs.shape[1]), fold[:, None]
        return torch.cat([self._words[fold, source], self._pairs[fold, places]], -1)


def _ratio(found: Tensor, texts: Tensor) -> Tensor:
    """found [..., C], texts [..., C] → [..., C]"""
    others, rest = (each.sum(-1, keepdim=True) - each for each in (found, texts))
    return ((found + 1) / (texts + 2)).log() - ((others + 1) / (rest + 2)).log()
