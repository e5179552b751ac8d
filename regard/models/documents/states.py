"""The states of words in a text, which queries attend to.

counts        log-count ratios of the word, and of the word with the previous one: counts.py
embeddings    the embeddings themselves
convolution   h_j = relu(W [x_{j−1}; x_j; x_{j+1}]) (Kim 2014)
rnn           a bidirectional GRU (Bahdanau et al. 2015)
attention     Transformer blocks with any pattern; a sparse one allows thousands of words (Vaswani et al. 2017)

For the last three, the embeddings are concatenated: states are [h_j; x_j].
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from regard.models.dropout import Dropout
from regard.models.recurrent.encoder import Recurrence
from regard.models.transformer.layers import AttentionOptions, EncoderBlock, Shape, WeightsOut

Kind = Literal["counts", "embeddings", "convolution", "rnn", "attention"]


class States(nn.Module):
    """Maps words [B, S, D] of `lengths` [B] to states [B, S, E]; `real` [B, S] is False at padding, E is `features`."""

    def __init__(
        self, kind: Kind, width: int, hidden: int, shape: Shape, layers: int, attention: AttentionOptions
    ) -> None:
        super().__init__()
        self.kind, self._attention_options = kind, attention
        computed = {"counts": 0, "embeddings": 0, "convolution": hidden, "rnn": 2 * hidden, "attention": width}[kind]
        self.features = width + computed
        self.dropout = Dropout(shape.dropout)
        if kind == "convolution":
            self.window = nn.Conv1d(width, hidden, 3, padding=1)
        elif kind == "rnn":
            self.recurrence = Recurrence("gru", width, hidden, layers, True, shape.dropout)
        elif kind == "attention":
            self.blocks = nn.ModuleList(EncoderBlock(shape, attention) for _ in range(layers))
            self.norm = nn.LayerNorm(width)

    def can_capture(self, device: torch.device) -> bool:
        """Can a CUDA graph capture it, because nothing in it synchronizes with the host?"""
        if self.kind == "rnn":
            return self.recurrence.can_capture(device)
        return self.kind != "attention" or self._attention_options.is_standard

    def forward(self, words: Tensor, real: Tensor, lengths: Tensor, weights_out: WeightsOut = None) -> Tensor:
        """Return the states; append the self-attention weights [B, heads, S, S] of each layer to `weights_out`."""
        if self.kind in ("counts", "embeddings"):
            return words
        if self.kind == "convolution":
            states = self.dropout(self.window((words * real[..., None]).mT).mT.relu())
        elif self.kind == "rnn":
            states = self.recurrence(words, lengths)[0]
        else:
            states = words
            for block in self.blocks:
                states = block(states, lengths.to(states.device), weights_out=weights_out)
            states = self.dropout(self.norm(states))
        return torch.cat([states, words], -1)
