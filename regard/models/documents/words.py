"""Words as a classifier meets them: several representations of each, added up.

    x_j = E[w_j] + mean over its runs of letters of R[run] + N[hash(w_{j−1}, w_j)] + P[j]

The word itself; how it is spelled (Bojanowski et al. 2017), which also tells about words never met; the word with the
one before it, by a hash (Joulin et al. 2017); and where it stands. In training, each of the first three is now and then
left out, so that the others learn to do without it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.models.dropout import Dropout
from regard.models.embedding import Embedding, rows_of
from regard.models.transformer.positions import Positions
from regard.text.documents import DocumentBatch

FIRST, SECOND = 1_000_003, 7_919
"""odd numbers of a hash"""


class Words(nn.Module):
    """batch → [B, S, D]"""

    def __init__(
        self, vocabulary: int, runs: int, neighbours: int, positions: int, width: int, left_out: float, dropout: float
    ) -> None:
        """`runs` of letters, `neighbours` places of the hash, `positions` that are told apart: 0 is none of these."""
        super().__init__()
        self.embedding = Embedding(vocabulary, width, padding_idx=0)
        self.spelling = Embedding(runs, width, padding_idx=0) if runs else None
        self.neighbours = Embedding(neighbours, width) if neighbours else None
        self.positions = Positions("learned", width, positions) if positions else None
        self.dropout = Dropout(dropout)
        self._left_out = left_out
        with torch.no_grad():
            for table, spread in ((self.embedding, 0.1), (self.spelling, 0.1), (self.neighbours, 0.02)):
                if table is not None:
                    nn.init.normal_(table.weight, std=spread)
                    if table.padding_idx is not None:
                        table.weight[table.padding_idx] = 0
            if self.positions is not None and self.positions.table is not None:
                nn.init.normal_(self.positions.table, std=0.02)

    def forward(self, batch: DocumentBatch) -> Tensor:
        embedded = self._kept(self.embedding(batch.source))
        if self.spelling is not None:
            embedded = embedded + self._kept(rows_of(self._spelled(batch.spelled), batch.which))
        if self.neighbours is not None:
            embedded = embedded + self._kept(self.neighbours(hashed(batch.source, self.neighbours.num_embeddings)))
        if self.positions is not None:
            embedded = self.positions(embedded)
        found: Tensor = self.dropout(embedded)
        return found

    def _spelled(self, runs: Tensor) -> Tensor:
        """[U, G] → [U, D], each different word once."""
        assert self.spelling is not None
        counts = (runs != 0).sum(1, keepdim=True).clamp(min=1)
        found: Tensor = self.spelling(runs).sum(1) / counts
        return found

    def _kept(self, states: Tensor) -> Tensor:
        """In training, a share of the words [B, S, D] has none of this."""
        if not self.training or not self._left_out:
            return states
        kept = torch.rand(states.shape[:2], device=states.device) >= self._left_out
        return states * kept[..., None]


def hashed(tokens: Tensor, places: int) -> Tensor:
    """[B, S] → the place of each token with the one before it, [B, S]; nothing comes before the first."""
    before = nn.functional.pad(tokens, (1, 0))[:, :-1]
    return (tokens * FIRST + before * SECOND) % 2_147_483_647 % places
