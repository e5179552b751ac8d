"""The word embeddings of a classifier: a sum of several representations.

    x_j = E[w_j] + mean over its letter n-grams of R[n-gram] + N[hash(w_{j−1}, w_j)] + P[j]

They are the word itself; its spelling (Bojanowski et al. 2017), which also covers unknown words; the pair of the
previous word and this one, by a hash (Joulin et al. 2017); and the position. In training, each of the first three is
sometimes left out, so that the others learn to do without it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.models.dropout import Dropout
from regard.models.embedding import Embedding, gather_rows
from regard.models.transformer.positions import Positions
from regard.text.documents import DocumentBatch

TOKEN_FACTOR, PREVIOUS_FACTOR = 1_000_003, 7_919
"""the factors of this word and of the previous one in the hash of a pair"""


class WordEmbedding(nn.Module):
    """Maps a batch to word embeddings [B, S, D]."""

    def __init__(
        self, vocabulary: int, runs: int, neighbours: int, positions: int, width: int, left_out: float, dropout: float
    ) -> None:
        """Set the numbers of letter n-grams (`runs`), hash buckets for pairs (`neighbours`) and `positions`; 0 is none.
        `left_out` is the fraction of representations that are left out in training."""
        super().__init__()
        self.embedding = Embedding(vocabulary, width, padding_idx=0)
        self.spelling = Embedding(runs, width, padding_idx=0) if runs else None
        self.neighbours = Embedding(neighbours, width) if neighbours else None
        self.positions = Positions("learned", width, positions) if positions else None
        self.dropout = Dropout(dropout)
        self._left_out = left_out
        with torch.no_grad():
            for table, std in ((self.embedding, 0.1), (self.spelling, 0.1), (self.neighbours, 0.02)):
                if table is not None:
                    nn.init.normal_(table.weight, std=std)
                    if table.padding_idx is not None:
                        table.weight[table.padding_idx] = 0
            if self.positions is not None and self.positions.table is not None:
                nn.init.normal_(self.positions.table, std=0.02)

    def forward(self, batch: DocumentBatch) -> Tensor:
        embedded = self._leave_out(self.embedding(batch.source))
        if self.spelling is not None:
            embedded = embedded + self._leave_out(gather_rows(self._spelling_vectors(batch.ngrams), batch.word_indices))
        if self.neighbours is not None:
            pairs = pair_buckets(batch.source, self.neighbours.num_embeddings)
            embedded = embedded + self._leave_out(self.neighbours(pairs))
        if self.positions is not None:
            embedded = self.positions(embedded)
        words: Tensor = self.dropout(embedded)
        return words

    def _spelling_vectors(self, runs: Tensor) -> Tensor:
        """Return the spelling vectors [U, D] of the distinct words of a batch, given their letter n-grams [U, G]."""
        assert self.spelling is not None
        counts = (runs != 0).sum(1, keepdim=True).clamp(min=1)
        mean: Tensor = self.spelling(runs).sum(1) / counts
        return mean

    def _leave_out(self, states: Tensor) -> Tensor:
        """Return the representations [B, S, D], in training with 0 for a random fraction of the words."""
        if not self.training or not self._left_out:
            return states
        mask = torch.rand(states.shape[:2], device=states.device) >= self._left_out
        return states * mask[..., None]


def pair_buckets(tokens: Tensor, buckets: int) -> Tensor:
    """Return the hash bucket [B, S] of each token [B, S] with the previous one; 0 precedes the first."""
    previous = nn.functional.pad(tokens, (1, 0))[:, :-1]
    return (tokens * TOKEN_FACTOR + previous * PREVIOUS_FACTOR) % 2_147_483_647 % buckets
