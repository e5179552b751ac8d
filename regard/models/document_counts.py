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

from regard.models.document_words import hashed
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

    def ratios(self, source: Tensor, less: Sequence[Tensor] | None = None) -> Tensor:
        """source [B, S]; `less`: by how much less there is of each word, of each pair [B, S, C], of texts [B, 1, C]."""
        found: list[Tensor] = [self.words[source], self.pairs[self.places(source)], self.texts]
        if less is not None:
            found = [mine - its for mine, its in zip(found, less, strict=True)]
        words, pairs, texts = found
        return torch.cat([_ratio(words, texts), _ratio(pairs, texts)], -1)

    def places(self, source: Tensor) -> Tensor:
        """Of each word with the one before it, in the table of pairs."""
        return hashed(source, len(self.pairs))

    def count(self, documents: Sequence[Document], labels: Sequence[int]) -> None:
        """Add texts with their labels; a word counts once a text."""
        for document, label in zip(documents, labels, strict=True):
            source = torch.tensor([piece.token for piece in document.pieces], dtype=torch.long)
            self.words[source.unique(), label] += 1
            self.pairs[self.places(source[None]).unique(), label] += 1
            self.texts[0, label] += 1


class Folds:
    """The counts of each of ten parts of the training texts; all together become those of the model."""

    def __init__(self, counts: Counts, documents: Sequence[Document], labels: Sequence[int]) -> None:
        self._whole = counts
        parts = [Counts(len(counts.words), counts.words.shape[1]) for _ in range(FOLDS)]
        for fold, part in enumerate(parts):
            part.count(documents[fold::FOLDS], labels[fold::FOLDS])
            for mine, its in zip(counts.parameters(), part.parameters(), strict=True):
                mine.add_(its)
        self._words, self._pairs, self._texts = (  # [folds, …, C]
            torch.stack([getattr(part, name) for part in parts]) for name in ("words", "pairs", "texts")
        )

    def ratios(self, rows: Sequence[int], source: Tensor) -> Tensor:
        """Of training texts, by their numbers and words [B, S]: [B, S, 2C]."""
        folds = torch.tensor(rows)[:, None] % FOLDS  # [B, 1]
        places = self._whole.places(source)
        return self._whole.ratios(
            source, (self._words[folds, source], self._pairs[folds, places], self._texts[folds, 0])
        )


def _ratio(found: Tensor, texts: Tensor) -> Tensor:
    """found [..., C], texts [..., C] → [..., C]"""
    others, rest = (each.sum(-1, keepdim=True) - each for each in (found, texts))
    return ((found + 1) / (texts + 2)).log() - ((others + 1) / (rest + 2)).log()
