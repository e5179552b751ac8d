"""Beam search over a batch of sentences, which records the attention of every hypothesis.

At each step the k hypotheses of a sentence are extended by every token; those among the k best that end are set aside,
and the k best of the others continue. A sentence is finished when k hypotheses have ended, or at its maximum length.
Hypotheses are ranked by log p(y) / |y|^α.

A step runs on the model's device, and the host reads what it chose. On a GPU, steps of one shape are captured once as a
CUDA graph and replayed, several before the host reads their outputs; finished sentences stay in the batch meanwhile.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.search import graph_replay
from regard.search.hypothesis import DecoderModel, Hypothesis, LengthLimit, Prefixes
from regard.search.log_probs import log_probs, sentence_chunks, top_k
from regard.search.recombination import Recombination, Surface
from regard.text.vocabulary import END, START

MAX_REPLAYED = 64  # steps that static buffers have room for
MIN_REPLAYED = 3  # steps below which capturing a graph does not pay


@dataclass
class _Ended:
    """A hypothesis that ended, by where its last step stands in the history."""

    score: float
    log_probability: float
    step: int
    slot: int
    finished: bool


@dataclass
class _History:
    """What was chosen at every step, for all active sentences: back-pointers."""

    sentences: list[np.ndarray] = field(default_factory=list)  # each [B']: the number of the sentence in each row
    parents: list[np.ndarray] = field(default_factory=list)  # each [B', k]: from which slot of the step before
    tokens: list[np.ndarray] = field(default_factory=list)
    weights: list[np.ndarray] = field(default_factory=list)  # each [B', k, layers, heads, S]: of the slots before

    def hypothesis(self, sentence: int, ended: _Ended, length: int) -> Hypothesis:
        """Return a hypothesis, by following the back-pointers from where it ended. `length`: that of the source."""
        tokens, rows = [], []
        slot = ended.slot
        for step in range(ended.step, -1, -1):
            row = int(np.searchsorted(self.sentences[step], sentence))
            parent = int(self.parents[step][row, slot])
            tokens.append(int(self.tokens[step][row, slot]))
            rows.append(self.weights[step][row, parent, ..., :length])
            slot = parent
        tokens = tokens[:0:-1] if ended.finished else tokens[::-1]  # without the end token
        return Hypothesis(tokens, ended.log_probability, ended.score, ended.finished, np.stack(rows[::-1], 2))


@torch.no_grad()
def beam(
    model: DecoderModel,
    source: Tensor,
    lengths: Tensor,
    limit: LengthLimit,
    *,
    width: int = 5,
    best: int = 1,
    penalty: float = 1.0,
    prefixes: Prefixes = None,
    surface: Surface | None = None,
) -> list[list[Hypothesis]]:
    """Return the `best` hypotheses of each sentence, best first, or fewer. source [B, S] of `lengths` [B].

    All that ended are ranked: up to 2 · `width` − 1, because several may end in the last step.

    `prefixes`: tokens with which each translation must begin. `surface`: of prefixes that it maps to the same value
    only one continues (recombination.py).
    """
    search = BeamSearch(model, source, lengths, limit, width, penalty, prefixes, surface)
    while search.is_active:
        search.step()
        if search.is_active and search.can_replay:
            search.replay()
    return search.results(best)


class _StepOutput(NamedTuple):
    """What a step chose, on the host."""

    parents: np.ndarray
    tokens: np.ndarray
    scores: np.ndarray  # each [B', 2k]: the best extensions
    continuing: np.ndarray  # [B', k]: which of them continue
    weights: np.ndarray  # [B', k, layers, heads, S]


class BeamSearch:
    """The state of a search: its active hypotheses, and those that ended."""

    def __init__(
        self,
        model: DecoderModel,
        source: Tensor,
        lengths: Tensor,
        limit: LengthLimit,
        width: int,
        penalty: float,
        prefixes: Prefixes,
        surface: Surface | None,
    ) -> None:
        self._model, self._width, self._penalty = model, width, penalty
        self._lengths = lengths.tolist()
        self._max_lengths, self._min_length = limit.max_lengths(self._lengths, prefixes), limit.shortest
        self._prefixes = prefixes
        self._device = source.device
        self._state = model.start(source, lengths)
        self._tokens = torch.full((len(lengths), 1), START, device=source.device)  # [B', k]
        self._scores = torch.zeros(len(lengths), 1, device=source.device)
        self._sentences = np.arange(len(lengths))
        self._active = np.ones(len(lengths), bool)
        self._recombination = None if surface is None else Recombination(surface, len(lengths))
        self._capturable = surface is None  # the host computes surfaces at every step
        self._history = _History()
        self._ended: list[list[_Ended]] = [[] for _ in self._lengths]

    @property
    def is_active(self) -> bool:
        return bool(self._active.any())

    @property
    def _time(self) -> int:
        return len(self._history.tokens)

    # Steps

    def step(self) -> None:
        """Run one step, without the sentences that are finished."""
        self._drop_finished()
        logits, weights, state = self._model.step(self._state, self._tokens)
        output, (parents, self._tokens, self._scores) = self._choose(logits, weights, self._scores)
        self._state = state.select(parents)
        self._record_step(_StepOutput(*(part.cpu().numpy() for part in output)))

    @property
    def can_replay(self) -> bool:
        """Can the next steps be replayed from a graph? The last one must have had their shapes."""
        longest_prefix = max(map(len, self._prefixes)) if self._prefixes is not None else 0
        same_shapes = self._time > 0 and self._history.weights[-1].shape[1] == self._tokens.shape[1]
        alike = self._capturable and same_shapes and self._time >= max(self._min_length, longest_prefix)
        return alike and graph_replay.can_replay(self._device)

    @property
    def _mostly_active(self) -> bool:
        return bool(self._active.mean() > 0.5)

    def replay(self) -> None:
        """Replay captured steps until all sentences are finished, or so few are active that a smaller batch pays."""
        steps = min(int((self._max_lengths[self._sentences] - self._time)[self._active].max()), MAX_REPLAYED)
        static = self._state.static(steps) if steps >= MIN_REPLAYED and self._mostly_active else None
        if static is None:
            return
        tokens, scores = self._tokens.clone(), self._scores.clone()

        def step() -> tuple[Tensor, ...]:
            logits, weights, after = self._model.step(static.state, tokens)
            output, (parents, *later) = self._choose(logits, weights, scores)
            static.update_(after, parents)
            tokens.copy_(later[0])
            scores.copy_(later[1])
            return output

        try:
            replayed, start = graph_replay.ReplayedSteps(step, self._device), self._time
        except RuntimeError as error:  # steps of a model that cannot be captured; run one by one they work
            warnings.warn(f"the steps of this search cannot be captured: {error}", RuntimeWarning, stacklevel=2)
            self._capturable = False
            return
        while self._time < start + steps and self._mostly_active:
            for output in replayed(min(graph_replay.CHUNK, start + steps - self._time)):
                self._record_step(_StepOutput(*output))
        self._state, self._tokens, self._scores = static.snapshot(self._time - start), tokens, scores

    def _drop_finished(self) -> None:
        if not self._active.all():
            rows = torch.from_numpy(np.flatnonzero(self._active)).to(self._device)
            self._state, self._tokens, self._scores = self._state.keep(rows), self._tokens[rows], self._scores[rows]
            self._sentences, self._active = self._sentences[self._active], self._active[self._active]

    # On the model's device

    def _choose(
        self, logits: Tensor, weights: Tensor, scores: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, Tensor, Tensor]]:
        """Return (the fields of `_StepOutput`; parents, tokens and scores [B', k] of the hypotheses that continue), for
        logits [B', k, V] and scores [B', k]."""
        best, places = self._extensions(logits, scores)  # [B', 2k]
        parents, tokens = places // logits.shape[-1], places % logits.shape[-1]
        if self._recombination is not None:
            best, parents, tokens = self._recombination.distinct(self._sentences, best, parents, tokens)
        unfinished = best.masked_fill(tokens == END, -torch.inf)
        # The places among the 2k of the first k that are possible; where there are fewer, impossible ones fill up.
        continuing = torch.argsort(unfinished.isinf().byte(), dim=1, stable=True)[:, : self._width]  # [B', k]
        output = (parents, tokens, best, continuing, weights.float())
        chosen = (parents.gather(1, continuing), tokens.gather(1, continuing), unfinished.gather(1, continuing))
        return output, chosen

    def _extensions(self, logits: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return the 2k best of all hypotheses by all tokens: log-probabilities and places in k · V, [B', 2k]."""
        parts = [self._best_tokens(part, self._sentences[rows]) for rows, part in sentence_chunks(logits)]
        by_token, tokens = (torch.cat(part) for part in zip(*parts, strict=True))  # [B', k, 2k]
        totals = by_token + scores[..., None]
        hypotheses = torch.arange(totals.shape[1], device=totals.device)[:, None]
        places = (hypotheses * logits.shape[-1] + tokens).flatten(1)
        best = totals.flatten(1).topk(min(2 * self._width, places.shape[1]))
        return best.values, places.gather(1, best.indices)

    def _best_tokens(self, logits: Tensor, sentences: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return the 2k best tokens after each hypothesis (log-probabilities, tokens), for logits [n, k, V]."""
        values = log_probs(logits, self._time >= self._min_length)
        if self._prefixes is not None:
            self._force_prefix(values, sentences)
        return top_k(values, min(2 * self._width, values.shape[-1]))

    def _force_prefix(self, values: Tensor, sentences: np.ndarray) -> None:
        """Set the log-probabilities of all tokens but the prefix's next one to −inf, in place."""
        assert self._prefixes is not None
        time = self._time
        for row, sentence in enumerate(sentences.tolist()):
            prefix = self._prefixes[sentence]
            if time < len(prefix):
                log_probability = values[row, :, prefix[time]].clone()
                values[row] = -torch.inf
                values[row, :, prefix[time]] = log_probability

    # On the host

    def _record_step(self, output: _StepOutput) -> None:
        """Append a step to the history: the k that continue, and behind them, in slots of their own, those that end."""
        time, width = self._time, output.continuing.shape[1]
        ends = output.tokens == END
        parents, tokens = (np.take_along_axis(x, output.continuing, 1) for x in (output.parents, output.tokens))
        scores = np.take_along_axis(np.where(ends, -np.inf, output.scores), output.continuing, 1)
        if self._recombination is not None:
            self._recombination.extend(self._sentences, parents, tokens, np.isfinite(scores))
        self._history.sentences.append(self._sentences)
        self._history.parents.append(np.concatenate([parents, output.parents], 1))
        self._history.tokens.append(np.concatenate([tokens, output.tokens], 1))
        self._history.weights.append(output.weights)
        rows, slots = np.nonzero(ends & np.isfinite(output.scores) & self._active[:, None])
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
            if slot < self._width:  # an end that is not among the k best would never have been set aside
                self._end(row, float(output.scores[row, slot]), time, width + slot, finished=True)
        at_max_length = time + 1 >= self._max_lengths[self._sentences]
        for row, slot in np.argwhere(np.isfinite(scores) & (at_max_length & self._active)[:, None]).tolist():
            self._end(row, float(scores[row, slot]), time, slot, finished=False)
        possible = np.isfinite(scores[:, 0])
        for row in np.flatnonzero(self._active & ~possible).tolist():
            if not self._ended[self._sentences[row]]:  # all scores are NaN: whatever stands first is its end
                self._end(row, -np.inf, time, 0, finished=False)
        ended = np.array([len(self._ended[sentence]) for sentence in self._sentences])
        self._active = self._active & ~at_max_length & (ended < self._enough()) & possible

    def _enough(self) -> int | np.ndarray:
        """Return the number of ended hypotheses with which a sentence is finished."""
        return self._width

    def _end(self, row: int, log_probability: float, time: int, slot: int, finished: bool) -> None:
        score = log_probability / (time + 1) ** self._penalty
        self._ended[self._sentences[row]].append(_Ended(score, log_probability, time, slot, finished))

    def results(self, best: int) -> list[list[Hypothesis]]:
        """Return the `best` hypotheses of each sentence: finished ones before those cut off, then by score."""
        ranked = [sorted(ended, key=lambda x: (not x.finished, -x.score))[:best] for ended in self._ended]
        return [
            [self._history.hypothesis(sentence, each, self._lengths[sentence]) for each in ended]
            for sentence, ended in enumerate(ranked)
        ]
