"""One token after another: the most probable one, or one drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from regard.search import playing
from regard.search.beam import beam
from regard.search.chances import by_rows, chances
from regard.search.hypothesis import Hypothesis, Length, Translating
from regard.search.top import top
from regard.text.vocabulary import END, START

Choose = Callable[[Tensor], Tensor]
"""logits [n, V] → tokens [n]"""


def greedy(
    model: Translating,
    source: Tensor,
    lengths: Tensor,
    limit: Length,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[Hypothesis]:
    """The most probable token at every step. source [B, S] of `lengths` [B]."""
    if source.is_cuda or playing.plays(source.device):  # as a beam of one, whose steps can be played back
        found = beam(model, source, lengths, limit, width=1, prefixes=prefixes)
        return [one for (one,) in found]
    return walk(model, source, lengths, limit, _likeliest, prefixes)


def _likeliest(logits: Tensor) -> Tensor:
    return torch.from_numpy(logits.numpy().argmax(-1))  # several times as fast as torch's


def sample(
    model: Translating,
    source: Tensor,
    lengths: Tensor,
    limit: Length,
    *,
    temperature: float = 1.0,
    among: int | None = None,
    generator: torch.Generator | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[Hypothesis]:
    """A token drawn from softmax(logits / temperature) at every step, if asked only `among` the most probable ones.

    `generator` may be of another device than the model: it draws there.
    """

    def choose(logits: Tensor) -> Tensor:
        places = None
        if among is not None and among < logits.shape[-1]:
            logits, places = top(logits, among)
        # From the highest down, so that no temperature makes anything infinite but what is impossible.
        below = (logits - logits.amax(-1, keepdim=True)).double() / temperature
        where = below.device if generator is None else generator.device
        drawn = torch.multinomial(torch.softmax(below, -1).to(where), 1, generator=generator).to(below.device)
        return (drawn if places is None else places.gather(-1, drawn))[:, 0]

    return walk(model, source, lengths, limit, choose, prefixes)


@torch.no_grad()
def walk(
    model: Translating,
    source: Tensor,
    lengths: Tensor,
    limit: Length,
    choose: Choose,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[Hypothesis]:
    """One hypothesis for each sentence; sentences that have ended are left behind."""
    real = lengths.tolist()
    caps = np.array([limit.cap(length) for length in real])
    if prefixes is not None:
        caps = np.maximum(caps, [len(prefix) + 1 for prefix in prefixes])
    found = [_Path() for _ in real]
    state, tokens = model.start(source, lengths), torch.full((len(real), 1), START, device=source.device)
    sentences, time = np.arange(len(real)), 0
    while len(sentences):
        logits, weights, state = model.step(state, tokens)
        parts = [
            _taken(chances(part, time >= limit.least), choose, _told(prefixes, sentences[some], time))
            for some, part in by_rows(logits[:, 0])
        ]
        chosen, gained = (torch.cat(found) for found in zip(*parts, strict=True))  # [B']
        gains = gained.tolist()
        seen = weights[:, 0].float().cpu().numpy()
        for row, (sentence, token) in enumerate(zip(sentences.tolist(), chosen.tolist(), strict=True)):
            found[sentence].add(token, gains[row], seen[row, ..., : real[sentence]])
        time += 1
        going = (chosen != END).cpu().numpy() & (time < caps[sentences])
        tokens = chosen[:, None]
        if not going.all():
            kept = torch.from_numpy(np.flatnonzero(going)).to(source.device)
            state, tokens, sentences = state.keep(kept), tokens[kept], sentences[going]
    return [path.hypothesis() for path in found]


class _Path:
    """What one sentence has come to."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.rows: list[np.ndarray] = []
        self.log_probability = 0.0

    def add(self, token: int, gained: float, weights: np.ndarray) -> None:
        self.tokens.append(token)
        self.rows.append(weights)
        self.log_probability += gained

    def hypothesis(self) -> Hypothesis:
        finished = self.tokens[-1] == END
        tokens = self.tokens[:-1] if finished else self.tokens
        score = self.log_probability / len(self.tokens)
        return Hypothesis(tokens, self.log_probability, score, finished, np.stack(self.rows, 2))


def _taken(logits: Tensor, choose: Choose, told: list[int] | None) -> tuple[Tensor, Tensor]:
    """Chances [n, V] → the tokens taken and their log-probabilities, [n]. `told`: those that must be, −1: any."""
    chosen = choose(logits)
    if told is not None:
        forced = torch.tensor(told, device=chosen.device)
        chosen = torch.where(forced >= 0, forced, chosen)
    return chosen, logits.gather(-1, chosen[:, None])[:, 0]


def _told(prefixes: Sequence[Sequence[int]] | None, sentences: np.ndarray, time: int) -> list[int] | None:
    """The tokens of the prefixes, −1 where they do not reach this far."""
    if prefixes is None:
        return None
    return [prefixes[s][time] if time < len(prefixes[s]) else -1 for s in sentences.tolist()]
