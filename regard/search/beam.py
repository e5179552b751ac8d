"""Beam search over a batch of sentences, which keeps what every hypothesis looked at.

At each step the k hypotheses of a sentence are extended by every token; those among the k best that end are set aside,
and the k best of the others go on. A sentence is done when k hypotheses have ended, or at its longest length. Ranked by
log p(y) / |y|^α.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from regard.search.chances import by_rows, chances
from regard.search.hypothesis import Hypothesis, Length, Translating
from regard.search.top import top
from regard.text.vocabulary import END, START


@dataclass
class _Ended:
    """A hypothesis that ended, by where its last step stands in the record."""

    score: float
    log_probability: float
    step: int
    slot: int
    finished: bool


@dataclass
class _Record:
    """What was chosen at every step, for all sentences still going: to be walked backwards."""

    sentences: list[np.ndarray] = field(default_factory=list)
    """each [B']: the number of the sentence in each row"""
    parents: list[np.ndarray] = field(default_factory=list)
    """each [B', k]: from which slot of the step before"""
    tokens: list[np.ndarray] = field(default_factory=list)
    weights: list[np.ndarray] = field(default_factory=list)
    """each [B', k, layers, heads, S]: of the slots of the step before, which produced the tokens"""

    def walk(self, sentence: int, ended: _Ended, length: int) -> Hypothesis:
        """Backwards from where it ended. `length` real source positions."""
        tokens, rows = [], []
        slot = ended.slot
        for step in range(ended.step, -1, -1):
            row = int(np.searchsorted(self.sentences[step], sentence))
            parent = int(self.parents[step][row, slot])
            tokens.append(int(self.tokens[step][row, slot]))
            rows.append(self.weights[step][row, parent, ..., :length])
            slot = parent
        tokens.reverse()
        if ended.finished:
            tokens.pop()
        weights = np.stack(rows[::-1], 2)
        return Hypothesis(tokens, ended.log_probability, ended.score, ended.finished, weights)


@torch.no_grad()
def beam(
    model: Translating,
    source: Tensor,
    lengths: Tensor,
    limit: Length,
    *,
    width: int = 5,
    best: int = 1,
    penalty: float = 1.0,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """The `best` ≤ `width` hypotheses of each sentence, best first. source [B, S] of `lengths` [B].

    `prefixes`: tokens with which each translation must begin.
    """
    search = _Beam(model, source, lengths, limit, width, penalty, prefixes)
    while search.going:
        search.step()
    return search.results(best)


class _Beam:
    def __init__(
        self,
        model: Translating,
        source: Tensor,
        lengths: Tensor,
        limit: Length,
        width: int,
        penalty: float,
        prefixes: Sequence[Sequence[int]] | None,
    ) -> None:
        self._model, self._width, self._penalty = model, width, penalty
        self._lengths = lengths.tolist()
        self._caps = np.array([limit.cap(length) for length in self._lengths])
        self._least = limit.least
        self._prefixes = prefixes
        if prefixes is not None:
            self._caps = np.maximum(self._caps, [len(prefix) + 1 for prefix in prefixes])
        self._state = model.start(source, lengths)
        self._tokens = torch.full((len(lengths), 1), START, device=source.device)  # [B', k]
        self._scores = torch.zeros(len(lengths), 1, device=source.device)
        self._sentences = np.arange(len(lengths))
        self._record = _Record()
        self._ended: list[list[_Ended]] = [[] for _ in self._lengths]

    @property
    def going(self) -> bool:
        return len(self._sentences) > 0

    def step(self) -> None:
        time = len(self._record.tokens)
        logits, weights, state = self._model.step(self._state, self._tokens)
        scores, places = self._extensions(logits, time)  # [B', 2k]
        parents, tokens = places // logits.shape[-1], places % logits.shape[-1]
        ends = tokens == END
        going_on = scores.masked_fill(ends, -torch.inf)
        kept = self._going_on(going_on)  # [B', k] places among the 2k
        pick = [x.gather(1, kept) for x in (parents, tokens, going_on)]
        self._note(parents, tokens, scores, ends, pick, weights, time)
        going = self._still_going(pick[2], time)
        self._state, self._tokens, self._scores = state.select(pick[0]), pick[1], pick[2]
        if not going.all():
            rows = torch.from_numpy(np.flatnonzero(going)).to(logits.device)
            self._state, self._tokens, self._scores = self._state.keep(rows), self._tokens[rows], self._scores[rows]
            self._sentences = self._sentences[going]

    def _extensions(self, logits: Tensor, time: int) -> tuple[Tensor, Tensor]:
        """The 2k best of all hypotheses by all tokens: log-probabilities and places in k · V, [B', 2k]."""
        parts = [self._best_tokens(part, time, self._sentences[some]) for some, part in by_rows(logits)]
        best, tokens = (torch.cat(found) for found in zip(*parts, strict=True))  # [B', k, 2k]
        best = best + self._scores[..., None]
        hypotheses = torch.arange(best.shape[1], device=best.device)[:, None]
        places = (hypotheses * logits.shape[-1] + tokens).flatten(1)
        found = best.flatten(1).topk(min(2 * self._width, places.shape[1]))
        return found.values, places.gather(1, found.indices)

    def _best_tokens(self, logits: Tensor, time: int, sentences: np.ndarray) -> tuple[Tensor, Tensor]:
        """[n, k, V] → the 2k likeliest tokens after each hypothesis of n sentences: (log-probabilities, tokens)"""
        found = chances(logits, time >= self._least)
        if self._prefixes is not None:
            self._force(found, time, sentences)
        return top(found, min(2 * self._width, found.shape[-1]))

    def _force(self, chances: Tensor, time: int, sentences: np.ndarray) -> None:
        """Leave only the next token of the prefix possible, in place."""
        assert self._prefixes is not None
        for row, sentence in enumerate(sentences.tolist()):
            prefix = self._prefixes[sentence]
            if time < len(prefix):
                right = chances[row, :, prefix[time]].clone()
                chances[row] = -torch.inf
                chances[row, :, prefix[time]] = right

    def _going_on(self, scores: Tensor) -> Tensor:
        """The first k that are possible; where there are fewer, impossible ones, of score −inf, fill up."""
        return torch.argsort(scores.isinf().byte(), dim=1, stable=True)[:, : self._width]

    def _note(
        self,
        parents: Tensor,
        tokens: Tensor,
        scores: Tensor,
        ends: Tensor,
        pick: list[Tensor],
        weights: Tensor,
        time: int,
    ) -> None:
        """Into the record: the k that go on, and behind them, in slots of their own, those that end."""
        width = pick[0].shape[1]
        self._record.sentences.append(self._sentences)
        self._record.parents.append(torch.cat([pick[0], parents], 1).cpu().numpy())
        self._record.tokens.append(torch.cat([pick[1], tokens], 1).cpu().numpy())
        self._record.weights.append(weights.float().cpu().numpy())
        values = scores.cpu().numpy()
        rows, slots = np.nonzero(ends.cpu().numpy() & np.isfinite(values))
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
            if slot < self._width:  # an end that is not among the k best would never have been set aside
                self._end(row, float(values[row, slot]), time, width + slot, finished=True)
        capped = np.flatnonzero(time + 1 >= self._caps[self._sentences])
        last = pick[2].cpu().numpy() if len(capped) else None
        for row in capped.tolist():
            assert last is not None
            for slot in range(width):
                if np.isfinite(last[row, slot]):
                    self._end(row, float(last[row, slot]), time, slot, finished=False)

    def _end(self, row: int, log_probability: float, time: int, slot: int, finished: bool) -> None:
        score = log_probability / (time + 1) ** self._penalty
        self._ended[self._sentences[row]].append(_Ended(score, log_probability, time, slot, finished))

    def _still_going(self, scores: Tensor, time: int) -> np.ndarray:
        """[B']: neither at the longest length, nor with k that have ended, nor without a possible token."""
        ended = np.array([len(self._ended[sentence]) for sentence in self._sentences])
        possible = scores[:, 0].isfinite().cpu().numpy()
        within = time + 1 < self._caps[self._sentences]
        return np.asarray(within & (ended < self._width) & possible)

    def results(self, best: int) -> list[list[Hypothesis]]:
        """Ended hypotheses before those cut off, the best first."""
        found = []
        for sentence, ended in enumerate(self._ended):
            ranked = sorted(ended, key=lambda x: (not x.finished, -x.score))[:best]
            found.append([self._record.walk(sentence, x, self._lengths[sentence]) for x in ranked])
        return found
