"""From the states of words to one vector a text: by one learned query, or by sentences first (Yang et al. 2016).

    flat           c = Σ_j a_j h_j                                        a = softmax(score(u, h))
    hierarchical   s_n = Σ_{j in n} a_j h_j,   c = Σ_n b_n [RNN(s)_n; s_n]      b = softmax(score(u', ·))

The weight of a word is a_j, or a_j · b_n where it stands in sentence n: over a text they add up to 1 either way.
B texts, S words, N sentences, M sentences of all texts together, W words in the longest, Q queries, E features.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.core.pool import Pool
from regard.core.scores import Additive
from regard.models.documents.states import States
from regard.models.recurrent.encoder import Recurrence


class Pooled(NamedTuple):
    context: Tensor
    """[B, Q · E]"""
    weights: Tensor | None
    """[B, Q, S] if asked for"""


class Flat(nn.Module):
    """One pool over all words."""

    def __init__(self, states: States, queries: int, attention: int) -> None:
        super().__init__()
        self.states = states
        self.pool = pool(states.features, queries, attention)
        self.features = queries * states.features

    def forward(self, words: Tensor, lengths: Tensor, sentences: Tensor, shown: Tensor, weights: bool) -> Pooled:
        """words [B, S, D]; `shown` [B, S]: those that may be looked at."""
        found = self.pool(self._states(words, lengths), allowed=shown[:, None], weights=weights)
        return Pooled(found.context.flatten(1), found.weights)

    def attentions(self, words: Tensor, lengths: Tensor) -> list[Tensor]:
        """How the words look at one another, [B, heads, S, S] for each layer; nothing if they do not."""
        seen: list[Tensor] = []
        self._states(words, lengths, seen)
        return seen

    def _states(self, words: Tensor, lengths: Tensor, seen: list[Tensor] | None = None) -> Tensor:
        real = torch.arange(words.shape[1], device=words.device) < lengths.to(words.device)[:, None]
        found: Tensor = self.states(words, real, lengths, seen)
        return found


class Hierarchical(nn.Module):
    """Words to sentences, sentences to the text."""

    def __init__(self, states: States, hidden: int, dropout: float, queries: int, attention: int) -> None:
        super().__init__()
        self.states = states
        self.words = pool(states.features, 1, attention)
        self.recurrence = Recurrence("gru", states.features, hidden, 1, True, dropout)
        self.sentences = pool(states.features + 2 * hidden, queries, attention)
        self.features = queries * (states.features + 2 * hidden)

    def forward(self, words: Tensor, lengths: Tensor, sentences: Tensor, shown: Tensor, weights: bool) -> Pooled:
        parts = Parts(sentences)
        own = parts.lengths.cpu()
        states = self.states(parts.cut(words), parts.real, own)  # [M, W, E]
        visible = parts.cut(shown) & parts.real
        visible[:, 0] |= ~visible.any(1)  # of a sentence something is always seen
        inside = self.words(states, allowed=visible[:, None], weights=weights)
        vectors = parts.joined(inside.context[:, 0])  # [B, N, E]
        counts = (sentences > 0).sum(1)
        above = torch.cat([self.recurrence(vectors, counts.cpu())[0], vectors], -1)
        found = self.sentences(above, lengths=counts, weights=weights)
        if found.weights is None or inside.weights is None:
            return Pooled(found.context.flatten(1), None)
        by_word = parts.spread(inside.weights[:, 0], words.shape[1])  # [B, S]
        by_sentence = found.weights.gather(
            -1, parts.owners(words.shape[1])[:, None].expand(-1, found.weights.shape[1], -1)
        )
        return Pooled(found.context.flatten(1), by_sentence * by_word[:, None])


class Parts:
    """Where the sentences lie: `sentences` [B, N] holds their lengths, 0 behind the last."""

    def __init__(self, sentences: Tensor) -> None:
        self._sentences = sentences
        self.rows, self.numbers = (sentences > 0).nonzero(as_tuple=True)  # [M]
        self.lengths = sentences[self.rows, self.numbers]
        starts = (sentences.cumsum(1) - sentences)[self.rows, self.numbers]
        inner = torch.arange(int(self.lengths.max()), device=sentences.device)
        self.real = inner < self.lengths[:, None]  # [M, W]
        self.places = torch.where(self.real, starts[:, None] + inner, 0)

    def cut(self, states: Tensor) -> Tensor:
        """[B, S, ...] → [M, W, ...]"""
        return states[self.rows[:, None], self.places]

    def joined(self, vectors: Tensor) -> Tensor:
        """[M, E] → [B, N, E], 0 where there is no sentence."""
        table = vectors.new_zeros(*self._sentences.shape, vectors.shape[-1])
        return table.index_put((self.rows, self.numbers), vectors)

    def spread(self, weights: Tensor, size: int) -> Tensor:
        """[M, W] → [B, S]"""
        table = weights.new_zeros(len(self._sentences), size)
        rows = self.rows[:, None].expand_as(self.places)
        return table.index_put((rows[self.real], self.places[self.real]), weights[self.real])

    def owners(self, size: int) -> Tensor:
        """[B, S]: the number of the sentence that a word stands in."""
        ends = self._sentences.cumsum(1)
        places = torch.arange(size, device=ends.device).expand(len(ends), -1).contiguous()
        return torch.searchsorted(ends.contiguous(), places, right=True).clamp(max=ends.shape[1] - 1)


def pool(features: int, queries: int, attention: int) -> Pool:
    return Pool(features, queries=queries, score=Additive(features, features, attention))
