"""Beam search over a batch of sentences, which keeps what every hypothesis looked at.

At each step the k hypotheses of a sentence are extended by every token; those among the k best that end are set aside,
and the k best of the others go on. A sentence is done when k hypotheses have ended, or at its longest length. Ranked by
log p(y) / |y|^α.

A step is computed where the model is, and tells the host what it chose. On a GPU, steps of a shape are recorded once
and played back, several before the host looks at what they told; sentences that are done are carried along meanwhile.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.search import playing
from regard.search.chances import by_rows, chances
from regard.search.hypothesis import Hypothesis, Length, Translating
from regard.search.recombination import Recombination, Surface
from regard.search.top import top
from regard.text.vocabulary import END, START

MOST_PLAYED = 64
"""steps for which room is made at once"""
LEAST_PLAYED = 3
"""steps below which a recording would not pay"""


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
    surface: Surface | None = None,
) -> list[list[Hypothesis]]:
    """The `best` ≤ `width` hypotheses of each sentence, best first. source [B, S] of `lengths` [B].

    `prefixes`: tokens with which each translation must begin. `surface`: of beginnings that it maps to the same value
    only one goes on (recombination.py).
    """
    search = _Beam(model, source, lengths, limit, width, penalty, prefixes, surface)
    while search.going:
        search.step()
        if search.going and search.plays:
            search.play()
    return search.results(best)


class _Told(NamedTuple):
    """What a step chose, on the host."""

    parents: np.ndarray
    tokens: np.ndarray
    scores: np.ndarray
    """each [B', 2k]: the best extensions"""
    kept: np.ndarray
    """[B', k]: which of them go on"""
    weights: np.ndarray
    """[B', k, layers, heads, S]"""


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
        surface: Surface | None,
    ) -> None:
        self._model, self._width, self._penalty = model, width, penalty
        self._lengths = lengths.tolist()
        self._caps = np.array([limit.cap(length) for length in self._lengths])
        self._least = limit.least
        self._prefixes = prefixes
        if prefixes is not None:
            self._caps = np.maximum(self._caps, [len(prefix) + 1 for prefix in prefixes])
        self._device = source.device
        self._state = model.start(source, lengths)
        self._tokens = torch.full((len(lengths), 1), START, device=source.device)  # [B', k]
        self._scores = torch.zeros(len(lengths), 1, device=source.device)
        self._sentences = np.arange(len(lengths))
        self._going = np.ones(len(lengths), bool)
        self._recombination = None if surface is None else Recombination(surface, len(lengths))
        self._recordable = surface is None  # which the host is asked for at every step
        self._record = _Record()
        self._ended: list[list[_Ended]] = [[] for _ in self._lengths]

    @property
    def going(self) -> bool:
        return bool(self._going.any())

    @property
    def _time(self) -> int:
        return len(self._record.tokens)

    # Steps

    def step(self) -> None:
        """One; sentences that are done by then are left behind first."""
        self._leave_behind()
        logits, weights, state = self._model.step(self._state, self._tokens)
        told, (parents, self._tokens, self._scores) = self._chosen(logits, weights, self._scores)
        self._state = state.select(parents)
        self._note(_Told(*(part.cpu().numpy() for part in told)))

    @property
    def plays(self) -> bool:
        """Can the next steps be played back? The last one must have been as they are."""
        forced = max(map(len, self._prefixes)) if self._prefixes is not None else 0
        same = self._time > 0 and self._record.weights[-1].shape[1] == self._tokens.shape[1]
        ready = self._recordable and same and self._time >= max(self._least, forced)
        return ready and playing.plays(self._device)

    @property
    def _mostly_going(self) -> bool:
        return bool(self._going.mean() > 0.5)

    def play(self) -> None:
        """Until all sentences are done, or so many that the others are better carried on alone."""
        most = min(int((self._caps[self._sentences] - self._time)[self._going].max()), MOST_PLAYED)
        held = self._state.held(most) if most >= LEAST_PLAYED and self._mostly_going else None
        if held is None:
            return
        tokens, scores = self._tokens.clone(), self._scores.clone()

        def step() -> tuple[Tensor, ...]:
            logits, weights, after = self._model.step(held.state, tokens)
            told, (parents, *later) = self._chosen(logits, weights, scores)
            held.hold(after, parents)
            tokens.copy_(later[0])
            scores.copy_(later[1])
            return told

        try:
            played, start = playing.Played(step, self._device), self._time
        except RuntimeError as error:  # steps that nobody has met yet; taken one by one they work
            warnings.warn(f"the steps of this search cannot be recorded: {error}", RuntimeWarning, stacklevel=2)
            self._recordable = False
            return
        while self._time < start + most and self._mostly_going:
            for told in played(min(playing.CHUNK, start + most - self._time)):
                self._note(_Told(*told))
        self._state, self._tokens, self._scores = held.released(self._time - start), tokens, scores

    def _leave_behind(self) -> None:
        if not self._going.all():
            rows = torch.from_numpy(np.flatnonzero(self._going)).to(self._device)
            self._state, self._tokens, self._scores = self._state.keep(rows), self._tokens[rows], self._scores[rows]
            self._sentences, self._going = self._sentences[self._going], self._going[self._going]

    # What the model's device computes

    def _chosen(
        self, logits: Tensor, weights: Tensor, scores: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, Tensor, Tensor]]:
        """logits [B', k, V], scores [B', k] → what is told, and of what goes on parents, tokens and scores, [B', k]"""
        found, places = self._extensions(logits, scores)  # [B', 2k]
        parents, tokens = places // logits.shape[-1], places % logits.shape[-1]
        if self._recombination is not None:
            found, parents, tokens = self._recombination.distinct(self._sentences, found, parents, tokens)
        going_on = found.masked_fill(tokens == END, -torch.inf)
        kept = self._going_on(going_on)  # [B', k] places among the 2k
        told = (parents, tokens, found, kept, weights.float())  # as in `_Told`
        return told, (parents.gather(1, kept), tokens.gather(1, kept), going_on.gather(1, kept))

    def _extensions(self, logits: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The 2k best of all hypotheses by all tokens: log-probabilities and places in k · V, [B', 2k]."""
        parts = [self._best_tokens(part, self._sentences[some]) for some, part in by_rows(logits)]
        best, tokens = (torch.cat(found) for found in zip(*parts, strict=True))  # [B', k, 2k]
        best = best + scores[..., None]
        hypotheses = torch.arange(best.shape[1], device=best.device)[:, None]
        places = (hypotheses * logits.shape[-1] + tokens).flatten(1)
        found = best.flatten(1).topk(min(2 * self._width, places.shape[1]))
        return found.values, places.gather(1, found.indices)

    def _best_tokens(self, logits: Tensor, sentences: np.ndarray) -> tuple[Tensor, Tensor]:
        """[n, k, V] → the 2k likeliest tokens after each hypothesis of n sentences: (log-probabilities, tokens)"""
        found = chances(logits, self._time >= self._least)
        if self._prefixes is not None:
            self._force(found, sentences)
        return top(found, min(2 * self._width, found.shape[-1]))

    def _force(self, chances: Tensor, sentences: np.ndarray) -> None:
        """Leave only the next token of the prefix possible, in place."""
        assert self._prefixes is not None
        time = self._time
        for row, sentence in enumerate(sentences.tolist()):
            prefix = self._prefixes[sentence]
            if time < len(prefix):
                right = chances[row, :, prefix[time]].clone()
                chances[row] = -torch.inf
                chances[row, :, prefix[time]] = right

    def _going_on(self, scores: Tensor) -> Tensor:
        """The first k that are possible; where there are fewer, impossible ones, of score −inf, fill up."""
        return torch.argsort(scores.isinf().byte(), dim=1, stable=True)[:, : self._width]

    # What the host makes of it

    def _note(self, told: _Told) -> None:
        """Into the record: the k that go on, and behind them, in slots of their own, those that end."""
        time, width = self._time, told.kept.shape[1]
        ends = told.tokens == END
        pick = [np.take_along_axis(x, told.kept, 1) for x in (told.parents, told.tokens)]
        going_on = np.take_along_axis(np.where(ends, -np.inf, told.scores), told.kept, 1)
        if self._recombination is not None:
            self._recombination.extend(self._sentences, pick[0], pick[1], np.isfinite(going_on))
        self._record.sentences.append(self._sentences)
        self._record.parents.append(np.concatenate([pick[0], told.parents], 1))
        self._record.tokens.append(np.concatenate([pick[1], told.tokens], 1))
        self._record.weights.append(told.weights)
        rows, slots = np.nonzero(ends & np.isfinite(told.scores) & self._going[:, None])
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
            if slot < self._width:  # an end that is not among the k best would never have been set aside
                self._end(row, float(told.scores[row, slot]), time, width + slot, finished=True)
        at_their_longest = time + 1 >= self._caps[self._sentences]
        for row, slot in np.argwhere(np.isfinite(going_on) & (at_their_longest & self._going)[:, None]).tolist():
            self._end(row, float(going_on[row, slot]), time, slot, finished=False)
        possible = np.isfinite(going_on[:, 0])
        for row in np.flatnonzero(self._going & ~possible).tolist():
            if not self._ended[self._sentences[row]]:  # not even a number: whatever stands first is its end
                self._end(row, -np.inf, time, 0, finished=False)
        ended = np.array([len(self._ended[sentence]) for sentence in self._sentences])
        self._going = self._going & ~at_their_longest & (ended < self._width) & possible

    def _end(self, row: int, log_probability: float, time: int, slot: int, finished: bool) -> None:
        score = log_probability / (time + 1) ** self._penalty
        self._ended[self._sentences[row]].append(_Ended(score, log_probability, time, slot, finished))

    def results(self, best: int) -> list[list[Hypothesis]]:
        """Ended hypotheses before those cut off, the best first."""
        found = []
        for sentence, ended in enumerate(self._ended):
            ranked = sorted(ended, key=lambda x: (not x.finished, -x.score))[:best]
            found.append([self._record.walk(sentence, x, self._lengths[sentence]) for x in ranked])
        return found
