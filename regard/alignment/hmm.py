"""Word alignment without a model of anything else: a hidden Markov model (Vogel et al. 1996) in both directions.

To Model 1's table it adds that neighbours are said by neighbours. The source word that says f_j depends on the one that
said f_{j−1}, by how far the jump is:

    p(f, a | e) = Π_j p(a_j | a_{j−1}, I) · t(f_j | e_{a_j}),   p(i | i', I) = s(i − i') / Σ_{i''} s(i'' − i')

The place before the first word is where a sentence begins, the one behind the last where it ends. A word that is said
by none leaves the place where it was (Och & Ney 2003). Both directions are trained together: a count is what both
believe (Liang et al. 2006), and links are where the mean of both beliefs is high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.alignment.lexicon import (
    NULL,
    Corpus,
    Counts,
    Floats,
    Group,
    Ints,
    Lexicon,
    Prior,
    corpus_of,
    estimated,
    inherited,
    likeness,
    model_one,
    shortened,
)
from regard.alignment.links import Links

FARTHEST = 7
"""jumps that are longer, backward or forward, count as one kind each"""
RAREST = 1e-5
"""no kind of jump is less likely, beside all others, than that"""
LEAST = 0.5
"""the mean of both directions' beliefs that makes a link: both find it likely, or one is sure"""
SPELLING = 0.3
"""what counts the prior has for words that are spelt the same"""
INHERITED = 3.0
"""what counts the prior has for each word, shared out as its beginning is translated"""
ITERATIONS = 5, 3, 4
"""of Model 1 and of this model over the beginnings of words, then over whole words"""


@dataclass(frozen=True)
class Model:
    lexicon: Lexicon
    forward: Floats
    """[jumps]: s, of the source places; not normalized"""
    backward: Floats
    """[jumps]: of the target places"""


@dataclass(frozen=True)
class Beliefs:
    """Of B sentences in one direction: N places say T words."""

    places: Floats
    """[T, B, N]: that the place says the word; what is missing to 1 is null's"""
    jumps: Floats
    """[N + 1, N + 1]: how often from each place, first where a sentence begins, to each, last where it ends"""
    likelihood: float
    """the logarithm, of all B"""


def statistical_links(pairs: Sequence[tuple[Sequence[str], Sequence[str]]], least: float = LEAST) -> list[Links]:
    """The links of each pair of token lists, learned from all of them. A pair with an empty side has none.

    `least` is how high the mean of both directions' beliefs must be.
    """
    if not 0 < least <= 1:
        raise ValueError(f"least: expected more than 0 and at most 1, got {least}")
    corpus = corpus_of(pairs)
    links: list[Links] = [frozenset()] * len(pairs)
    if not corpus.groups:
        return links
    model = learned(corpus)
    for group in corpus.groups:
        forward, backward = beliefs(corpus, group, model)
        both = (forward.places.transpose(1, 2, 0) + backward.places.transpose(1, 0, 2)) / 2
        for number, weights in zip(group.numbers.tolist(), both, strict=True):
            ours, theirs = np.nonzero(weights >= least)
            links[number] = frozenset(zip(ours.tolist(), theirs.tolist(), strict=True))
    return links


def learned(corpus: Corpus) -> Model:
    """The beginnings of words first: there are fewer, so each is seen more. Whole words go on from there."""
    one, short, whole = ITERATIONS
    beginnings = shortened(corpus)
    alike = SPELLING * likeness(beginnings.corpus)
    prior = Prior(alike, alike)
    jumps = np.exp(-0.5 * np.abs(np.arange(-FARTHEST - 1, FARTHEST + 2) - 1.0))
    model = Model(model_one(beginnings.corpus, one, prior), jumps, jumps)
    for _ in range(short):
        model, _ = improved(beginnings.corpus, model, prior)
    model = replace(model, lexicon=inherited(corpus, beginnings, model.lexicon))
    alike = SPELLING * likeness(corpus)
    prior = Prior(INHERITED * model.lexicon.forward + alike, INHERITED * model.lexicon.backward + alike)
    for _ in range(whole):
        model, _ = improved(corpus, model, prior)
    return model


def improved(corpus: Corpus, model: Model, prior: Prior | None = None, agreement: bool = True) -> tuple[Model, float]:
    """One iteration of expectation maximization, and the log likelihood before it."""
    counts = Counts.of(corpus, agreement)
    seen = [Jumps.none(model.forward), Jumps.none(model.backward)]
    for group in corpus.groups:
        forward, backward = beliefs(corpus, group, model)
        counts.add(group, forward.places.transpose(1, 2, 0), backward.places.transpose(1, 0, 2))
        counts.likelihood += forward.likelihood + backward.likelihood
        for jumps, found, scores in zip(seen, (forward, backward), (model.forward, model.backward), strict=True):
            jumps.add(found.jumps, scores)
    lexicon = estimated(corpus, counts, prior)
    return Model(lexicon, seen[0].scores(), seen[1].scores()), counts.likelihood


@dataclass
class Jumps:
    """The M step of s. With n(i', i) jumps seen, n(i') of them from i', and z(i') = Σ_i s(i − i') of the s before,

        s(d) = Σ_{i − i' = d} n(i', i)  /  Σ_{i − i' = d} (n(i') / z(i')),

    which never makes the likelihood less and needs no inner iterations (Hunter 2004).
    """

    taken: Floats
    """[jumps]: the sum above"""
    offered: Floats
    """[jumps]: the sum below"""

    @classmethod
    def none(cls, scores: Floats) -> Jumps:
        """Next to nothing, so that jumps that no sentence is long enough for stay as likely as they were."""
        return cls(1e-3 * scores, np.full(len(scores), 1e-3))

    def add(self, jumps: Floats, scores: Floats) -> None:
        kinds = _kinds(len(jumps) - 1)
        share = jumps.sum(1, keepdims=True) / scores[kinds].sum(1, keepdims=True)
        self.taken += np.bincount(kinds.ravel(), jumps.ravel(), len(scores))
        self.offered += np.bincount(kinds.ravel(), np.broadcast_to(share, kinds.shape).ravel(), len(scores))

    def scores(self) -> Floats:
        scores = self.taken / self.offered
        return np.asarray(np.maximum(scores / scores.sum(), RAREST))


def _kinds(places: int) -> Ints:
    """[N + 1, N + 1]: the kind of jump from each place, −1 … N − 1, to each, 0 … N."""
    jumps = np.arange(places + 1)[None, :] - np.arange(-1, places)[:, None]
    return np.asarray(np.clip(jumps, -FARTHEST - 1, FARTHEST + 1) + FARTHEST + 1)


def transitions(scores: Floats, places: int) -> Floats:
    """[N + 1, N + 1]: p(i | i', N), from i' = −1 … N − 1 to i = 0 … N."""
    weights = scores[_kinds(places)]
    return np.asarray(weights / weights.sum(1, keepdims=True), np.float32)


def beliefs(corpus: Corpus, group: Group, model: Model) -> tuple[Beliefs, Beliefs]:
    """The E step of a group: source places saying target words, and the other way round."""
    _, ours, theirs = group.shape
    cells = corpus.cells[group.cells].reshape(group.shape)
    lexicon = model.lexicon
    return (
        forward_backward(
            np.ascontiguousarray(lexicon.forward[cells].transpose(2, 0, 1)),
            lexicon.target_null[group.target].T,
            transitions(model.forward, ours),
        ),
        forward_backward(
            np.ascontiguousarray(lexicon.backward[cells].transpose(1, 0, 2)),
            lexicon.source_null[group.source].T,
            transitions(model.backward, theirs),
        ),
    )


@np.errstate(invalid="ignore")  # some matrix products warn of what was in memory that they overwrite
def forward_backward(said: Floats, said_by_none: Floats, transitions: Floats, null: float = NULL) -> Beliefs:
    """All B sentences at once, exactly (Baum et al. 1970); T words, N places.

    said [T, B, N]: t(word | place); said_by_none [T, B]: t(word | null); transitions [N + 1, N + 1].
    """
    words, sentences, places = said.shape
    jump, end = (1 - null) * transitions[:, :places], transitions[:, places]
    stay = (null * said_by_none)[..., None]
    reached = np.zeros((words + 1, sentences, places + 1), said.dtype)  # after t words, scaled to sum up to 1
    reached[0, :, 0] = 1
    scale = np.empty((words, sentences, 1), said.dtype)
    spoken = np.empty_like(said)  # the part of it that the last word was said by the place
    for word in range(words):
        np.matmul(reached[word], jump, out=spoken[word])
        spoken[word] *= said[word]
        after = np.multiply(reached[word], stay[word], out=reached[word + 1])
        after[:, 1:] += spoken[word]
        scale[word] = after.sum(-1, keepdims=True)
        after /= scale[word]
    spoken /= scale
    last = reached[words] @ end
    to_come = end / last[:, None]  # how likely all that follows is, from each place, over the same from where it is
    ahead = np.empty_like(said)
    for word in reversed(range(words)):
        spoken[word] *= to_come[:, 1:]
        np.multiply(said[word], to_come[:, 1:], out=ahead[word])
        ahead[word] /= scale[word]
        to_come = to_come * (stay[word] / scale[word]) + ahead[word] @ jump.T
    jumps = np.empty(transitions.shape)
    jumps[:, :places] = jump * (reached[:-1].reshape(-1, places + 1).T @ ahead.reshape(-1, places))
    jumps[:, places] = (reached[words] * (end / last[:, None])).sum(0)
    likelihood = float(np.log(scale).sum(dtype=np.float64) + np.log(last).sum(dtype=np.float64))
    return Beliefs(spoken, jumps, likelihood)
