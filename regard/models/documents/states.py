"""From words to states: what each word means where it stands.

counts        how telling the word is, and the word with the one before it: document_counts.py
embeddings    the words themselves
convolution   h_j = relu(W [x_{j−1}; x_j; x_{j+1}]), each with its neighbours (Kim 2014)
rnn           a GRU of both directions (Bahdanau et al. 2015)
attention     Transformer blocks with any pattern, over thousands of words where it is sparse (Vaswani et al. 2017)

Of the last three, the words themselves stand beside what was made of them: states [h_j; x_j].
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from regard.models.dropout import Dropout
from regard.models.recurrent.encoder import Recurrence
from regard.models.transformer.layers import EncoderBlock, Looking, Shape

Kind = Literal["counts", "embeddings", "convolution", "rnn", "attention"]


class States(nn.Module):
    """words [B, S, D], real [B, S], lengths [B] → states [B, S, E]; E is `features`"""

    def __init__(self, kind: Kind, width: int, hidden: int, shape: Shape, layers: int, looking: Looking) -> None:
        super().__init__()
        self.kind, self._looking = kind, looking
        made = {"counts": 0, "embeddings": 0, "convolution": hidden, "rnn": 2 * hidden, "attention": width}[kind]
        self.features = width + made
        self.dropout = Dropout(shape.dropout)
        if kind == "convolution":
            self.window = nn.Conv1d(width, hidden, 3, padding=1)
        elif kind == "rnn":
            self.recurrence = Recurrence("gru", width, hidden, layers, True, shape.dropout)
        elif kind == "attention":
            self.blocks = nn.ModuleList(EncoderBlock(shape, looking) for _ in range(layers))
            self.norm = nn.LayerNorm(width)

    def recordable(self, device: torch.device) -> bool:
        """Can a GPU record how the states are made? Not if the host is asked for anything."""
        if self.kind == "rnn":
            return self.recurrence.never_waits(device)
        looking = self._looking
        usual = (looking.score, looking.pattern, looking.normalizer) == ("scaled_dot", "full", "softmax")
        return self.kind != "attention" or usual

    def forward(self, words: Tensor, real: Tensor, lengths: Tensor, seen: list[Tensor] | None = None) -> Tensor:
        """The weights of self-attention, [B, heads, S, S], go into `seen`, if given."""
        if self.kind in ("counts", "embeddings"):
            return words
        if self.kind == "convolution":
            made = self.dropout(self.window((words * real[..., None]).mT).mT.relu())
        elif self.kind == "rnn":
            made = self.recurrence(words, lengths)[0]
        else:
            made = words
            for block in self.blocks:
                made = block(made, lengths.to(made.device), seen=seen)
            made = self.dropout(self.norm(made))
        return torch.cat([made, words], -1)
