"""Pool the states of words to one vector per text, directly or by way of sentences (Yang et al. 2016).

    flat           c = Σ_j a_j h_j                                        a = softmax(score(u, h))
    hierarchical   s_n = Σ_{j in n} a_j h_j,   c = Σ_n b_n [RNN(s)_n; s_n]      b = softmax(score(u', ·))

The weight of a word is a_j, or a_j · b_n for a word in sentence n: over a text the weights add up to 1 either way.
B texts, S words, N sentences, M sentences of all texts, W words in the longest sentence, Q queries, E features.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.core.pool import Pool
from regard.core.scores import Additive
from regard.models.documents.states import States
from regard.models.recurrent.encoder import Recurrence
from regard.models.transformer.layers import WeightsOut

Pooled = tuple[Tensor, Tensor | None]  # the contexts [B, Q · E] of texts, and the weights [B, Q, S] if requested


class FlatLevel(nn.Module):
    """Attention pooling over all words of a text."""

    def __init__(self, states: States, queries: int, attention: int) -> None:
        super().__init__()
        self.states = states
        self.pool = pool(states.features, queries, attention)
        self.features = queries * states.features

    def forward(self, words: Tensor, lengths: Tensor, sentences: Tensor, visible: Tensor, weights: bool) -> Pooled:
        """Pool words [B, S, D] of `lengths` [B], of which those in `visible` [B, S] may be attended to."""
        pooled = self.pool(self._states(words, lengths), allowed=visible[:, None], weights=weights)
        return pooled.context.flatten(1), pooled.weights

    def attentions(self, words: Tensor, lengths: Tensor) -> list[Tensor]:
        """Return the self-attention weights of each layer, [B, heads, S, S]; none without self-attention."""
        layers: list[Tensor] = []
        self._states(words, lengths, layers)
        return layers

    def _states(self, words: Tensor, lengths: Tensor, weights_out: WeightsOut = None) -> Tensor:
        real = torch.arange(words.shape[1], device=words.device) < lengths.to(words.device)[:, None]
        states: Tensor = self.states(words, real, lengths, weights_out)
        return states


class Hierarchical(nn.Module):
    """Attention pooling of words to sentences, and of sentences to the text."""

    def __init__(self, states: States, hidden: int, dropout: float, queries: int, attention: int) -> None:
        super().__init__()
        self.states = states
        self.words = pool(states.features, 1, attention)
        self.recurrence = Recurrence("gru", states.features, hidden, 1, True, dropout)
        self.sentences = pool(states.features + 2 * hidden, queries, attention)
        self.features = queries * (states.features + 2 * hidden)

    def forward(self, words: Tensor, lengths: Tensor, sentences: Tensor, visible: Tensor, weights: bool) -> Pooled:
        """Pool words [B, S, D] whose sentences have lengths [B, N]; `visible` is as in `FlatLevel`."""
        parts = SentenceParts(sentences)
        states = self.states(parts.cut(words), parts.real, parts.lengths.cpu())  # [M, W, E]
        allowed = parts.cut(visible) & parts.real
        allowed[:, 0] |= ~allowed.any(1)  # attention needs at least one word of each sentence
        by_words = self.words(states, allowed=allowed[:, None], weights=weights)
        vectors = parts.joined(by_words.context[:, 0])  # [B, N, E]
        counts = (sentences > 0).sum(1)
        sentence_states = torch.cat([self.recurrence(vectors, counts.cpu())[0], vectors], -1)
        pooled = self.sentences(sentence_states, lengths=counts, weights=weights)
        if pooled.weights is None or by_words.weights is None:
            return pooled.context.flatten(1), None
        word_weights = parts.spread(by_words.weights[:, 0], words.shape[1])  # [B, S]
        owners = parts.owners(words.shape[1])[:, None].expand(-1, pooled.weights.shape[1], -1)
        return pooled.context.flatten(1), pooled.weights.gather(-1, owners) * word_weights[:, None]


class SentenceParts:
    """The positions of sentences in texts, given their lengths [B, N], padded with 0."""

    def __init__(self, sentences: Tensor) -> None:
        self._sentences = sentences
        self.rows, self.numbers = (sentences > 0).nonzero(as_tuple=True)  # [M]
        self.lengths = sentences[self.rows, self.numbers]
        starts = (sentences.cumsum(1) - sentences)[self.rows, self.numbers]
        index = torch.arange(int(self.lengths.max()), device=sentences.device)
        self.real = index < self.lengths[:, None]  # [M, W]
        self.positions = torch.where(self.real, starts[:, None] + index, 0)

    def cut(self, states: Tensor) -> Tensor:
        """Return the states [B, S, ...] of texts as those of sentences: [M, W, ...]."""
        return states[self.rows[:, None], self.positions]

    def joined(self, vectors: Tensor) -> Tensor:
        """Return the vectors [M, E] of sentences by text: [B, N, E], 0 where there is no sentence."""
        table = vectors.new_zeros(*self._sentences.shape, vectors.shape[-1])
        return table.index_put((self.rows, self.numbers), vectors)

    def spread(self, weights: Tensor, size: int) -> Tensor:
        """Return the weights [M, W] of words in sentences as those of words in texts: [B, S]."""
        table = weights.new_zeros(len(self._sentences), size)
        rows = self.rows[:, None].expand_as(self.positions)
        return table.index_put((rows[self.real], self.positions[self.real]), weights[self.real])

    def owners(self, size: int) -> Tensor:
        """Return the number of the sentence that each word belongs to: [B, S]."""
        ends = self._sentences.cumsum(1)
        positions = torch.arange(size, device=ends.device).expand(len(ends), -1).contiguous()
        return torch.searchsorted(ends.contiguous(), positions, right=True).clamp(max=ends.shape[1] - 1)


def pool(features: int, queries: int, attention: int) -> Pool:
    """Return an attention pool with an additive score of `attention` hidden features."""
    return Pool(features, queries=queries, score=Additive(features, features, attention))
