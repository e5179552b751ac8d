"""Log-count ratios: for each label, how much more often its texts contain a word than the other texts do.

    r_c(w) = log (n_c(w) + 1) / (N_c + 2)  −  log (n_¬c(w) + 1) / (N_¬c + 2)

n_c(w) is the number of texts of label c that contain the word, N_c that of all its texts (Wang & Manning 2012). The
same is computed for pairs of neighbouring words. Nothing here is trained by gradients. So that a training text does not
see its own label, its ratios are computed from counts without its fold of the data (`Folds`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.models.documents.words import pair_buckets
from regard.text.documents import Document, DocumentBatch

MAX_BUCKETS, MAX_TABLE_SIZE = 2**17, 2**20
"""the most hash buckets for pairs of words, and the most numbers in their table"""
FOLDS = 10  # parts of the training texts, for cross-fitting


class Counts(nn.Module):
    """Maps a batch to ratios [B, S, 2C]: of each word, and of the pair of it and the previous word."""

    def __init__(self, vocabulary: int, labels: int) -> None:
        super().__init__()
        buckets = max(1, min(MAX_BUCKETS, MAX_TABLE_SIZE // labels))
        self.words, self.pairs, self.texts = (
            nn.Parameter(torch.zeros(size, labels), requires_grad=False) for size in (vocabulary, buckets, 1)
        )

    def forward(self, batch: DocumentBatch) -> Tensor:
        return self.ratios(batch.source) if batch.ratios is None else batch.ratios

    def ratios(self, source: Tensor) -> Tensor:
        """Return the ratios [B, S, 2C] of source tokens [B, S]."""
        words, pairs = self.words[source], self.pairs[pair_buckets(source, len(self.pairs))]
        return torch.cat([_ratio(words, self.texts), _ratio(pairs, self.texts)], -1)

    def count(self, documents: Sequence[Document], labels: Sequence[int]) -> None:
        """Add texts with their labels to the counts; a word counts once per text."""
        gold = torch.tensor(labels, dtype=torch.long)
        self.texts.view(-1).index_add_(0, gold, torch.ones(len(gold)))
        sources = [torch.tensor([piece.token for piece in text.pieces], dtype=torch.long) for text in documents]
        owners = torch.repeat_interleave(torch.arange(len(sources)), torch.tensor(list(map(len, sources))))
        if not len(owners):
            return
        buckets = torch.cat([pair_buckets(source[None], len(self.pairs))[0] for source in sources])
        for table, rows in ((self.words, torch.cat(sources)), (self.pairs, buckets)):
            distinct = (owners * len(table) + rows).unique()  # (text, row) as one number
            cells = distinct % len(table) * table.shape[1] + gold[distinct // len(table)]
            table.view(-1).index_add_(0, cells, torch.ones(len(cells)))


class Folds:
    """Ratios for training texts: those of a fold are computed from the counts of the other nine folds.

    The model's counts become those of all folds. The tables are moved to the device of the texts, so that lookups on a
    GPU do not need the host.
    """

    def __init__(self, counts: Counts, documents: Sequence[Document], labels: Sequence[int]) -> None:
        parts = [Counts(len(counts.words), counts.words.shape[1]) for _ in range(FOLDS)]
        for fold, part in enumerate(parts):
            part.count(documents[fold::FOLDS], labels[fold::FOLDS])
            for total, partial in zip(counts.parameters(), part.parameters(), strict=True):
                total.add_(partial)
        tables = []
        for part in parts:
            words, pairs, texts = (a - b for a, b in zip(counts.parameters(), part.parameters(), strict=True))
            tables.append((_ratio(words, texts), _ratio(pairs, texts)))
        self._words, self._pairs = (torch.stack(each) for each in zip(*tables, strict=True))  # [folds, …, C]

    @staticmethod
    def of(rows: Sequence[int]) -> Tensor:
        """Return the fold of each training text, given its number: [B]."""
        return torch.tensor(rows) % FOLDS

    def ratios(self, fold: Tensor, source: Tensor) -> Tensor:
        """Return the ratios [B, S, 2C] of training texts with tokens [B, S] in folds [B]."""
        if self._words.device != source.device:
            self._words, self._pairs = self._words.to(source.device), self._pairs.to(source.device)
        buckets, fold = pair_buckets(source, self._pairs.shape[1]), fold[:, None]
        return torch.cat([self._words[fold, source], self._pairs[fold, buckets]], -1)


def _ratio(counts: Tensor, texts: Tensor) -> Tensor:
    """Return the log-count ratios [..., C], given n_c(w) [..., C] and the numbers of texts N_c [..., C]."""
    other_counts, other_texts = (each.sum(-1, keepdim=True) - each for each in (counts, texts))
    return ((counts + 1) / (texts + 2)).log() - ((other_counts + 1) / (other_texts + 2)).log()
