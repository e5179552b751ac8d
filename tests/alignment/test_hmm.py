"""The hidden Markov model: exact posteriors, and training that improves."""

from itertools import pairwise, product

import numpy as np
import pytest

from regard.alignment.corpus import Floats, Ints, TokenizedCorpus, corpus_of
from regard.alignment.hmm import KINDS, MAX_JUMP, Jumps, Model, Posteriors, e_step, forward_backward, posteriors
from regard.alignment.lexicon import UNSEEN_COUNT, m_step, uniform_lexicon

Pairs = list[tuple[list[str], list[str]]]
FLAT = np.ones(KINDS)


def transitions(scores: Floats, positions: int) -> Floats:
    """[N + 1, N + 1]: p(i | i', N), from i' = −1 … N − 1 to i = 0 … N, by the definition"""
    jumps = np.array([[to - since for to in range(positions + 1)] for since in range(-1, positions)])
    weights = scores[np.clip(jumps, -MAX_JUMP - 1, MAX_JUMP + 1) + MAX_JUMP + 1]
    return np.asarray(weights / weights.sum(1, keepdims=True))


def enumerated(message: Floats, by_none: Floats, table: Floats, null: float) -> tuple[float, Floats, Floats]:
    """Of one sentence [T, N], from every way to say it: each word by a place, or by none, which stays at the place."""
    words, places = message.shape
    total, believed, jumps = 0.0, np.zeros((words, places)), np.zeros(table.shape)
    for way in product([None, *range(places)], repeat=words):
        at, chance, taken = 0, 1.0, []
        for word, place in enumerate(way):
            if place is None:
                chance *= null * by_none[word]
                continue
            chance *= (1 - null) * table[at, place] * message[word, place]
            taken.append((at, place))
            at = place + 1
        taken.append((at, places))
        chance *= table[at, places]
        total += chance
        for word, place in enumerate(way):
            if place is not None:
                believed[word, place] += chance
        for jump in taken:
            jumps[jump] += chance
    return total, believed / total, jumps / total


@pytest.mark.parametrize(("words", "places"), [(1, 1), (1, 3), (3, 1), (3, 3), (5, 3), (4, 4)])
def test_posteriors_are_those_of_all_ways_enumerated(words: int, places: int) -> None:
    draw = np.random.default_rng(words * 10 + places)
    message, by_none, scores = draw.random((words, places, 2)), draw.random((words, 2)), draw.random(KINDS)
    result = forward_backward(message, by_none, scores, np.full(2, places), null=0.3)
    table = transitions(scores, places)
    whole = [enumerated(message[..., one], by_none[:, one], table, 0.3) for one in range(2)]
    np.testing.assert_allclose(result.likelihoods, [np.log(total) for total, _, _ in whole], atol=1e-9)
    np.testing.assert_allclose(result.positions, np.stack([believed for _, believed, _ in whole], 2), atol=1e-9)
    jumps = sum(jumps for _, _, jumps in whole)
    np.testing.assert_allclose(result.jumps, jumps, atol=1e-9)
    np.testing.assert_allclose(result.departures[places], jumps.sum(1), atol=1e-9)
    assert not result.departures[:places].any()


def padded(words: int, places: int, sizes: list[tuple[int, int]]) -> tuple[Floats, Floats]:
    """Random emissions of sentences of different sizes, padded as `Lexicon.padded` does."""
    draw = np.random.default_rng(7)
    emission, by_none = np.zeros((words, places, len(sizes))), np.full((words, len(sizes)), 1 / 0.3)
    for row, (length, size) in enumerate(sizes):
        emission[:length, :size, row] = draw.random((length, size))
        by_none[:length, row] = draw.random(length)
    return emission, by_none


def test_padding_changes_nothing_and_counts_are_repeats() -> None:
    """A sentence alone, and in a batch with longer ones; and three times, as three sentences are."""
    sizes = [(2, 3), (4, 1), (4, 4), (1, 4)]
    emission, by_none = padded(4, 4, sizes)
    scores = np.random.default_rng(8).random(KINDS)
    lengths, counts = np.array([size for _, size in sizes]), np.array([1.0, 3.0, 1.0, 2.0])
    together = forward_backward(emission, by_none, scores, lengths, counts, 0.3)
    sums = Jumps(scores)
    sums.add(together)
    alone = Jumps(scores)
    for row, (words, places) in enumerate(sizes):
        one = np.index_exp[:words, :places, row : row + 1]
        result = forward_backward(emission[one], by_none[:words, row : row + 1], scores, np.array([places]), None, 0.3)
        np.testing.assert_allclose(together.positions[one], result.positions, atol=1e-9)
        np.testing.assert_allclose(together.likelihoods[row], result.likelihoods[0], atol=1e-9)
        assert not together.positions[words:, :, row].any() and not together.positions[:, places:, row].any()
        for _ in range(int(counts[row])):
            alone.add(result)
    np.testing.assert_allclose(sums.sums, alone.sums, atol=1e-9)


def test_jumps_are_counted_by_their_definition() -> None:
    """Hunter's update, written out: of two sentences of 2 and 3 positions."""
    draw = np.random.default_rng(9)
    scores = draw.random(KINDS)
    expected = np.zeros((2, KINDS))
    jumps, departures = np.zeros((4, 4)), np.zeros((4, 4))
    for places in (2, 3):
        counts = draw.random((places + 1, places + 1))
        jumps[: places + 1, : places + 1] += counts
        departures[places, : places + 1] += counts.sum(1)
        for since in range(-1, places):
            z = sum(scores[to - since + MAX_JUMP + 1] for to in range(places + 1))
            for to in range(places + 1):
                kind = to - since + MAX_JUMP + 1
                expected[0, kind] += counts[since + 1, to]
                expected[1, kind] += counts[since + 1].sum() / z
    update = Jumps(scores, np.zeros((2, KINDS)))
    update.add(Posteriors(np.zeros((1, 3, 2)), jumps, departures, np.zeros(2)))
    np.testing.assert_allclose(update.sums, expected, atol=1e-9)


def left(table: Floats, given: Ints) -> float:
    """The logarithm of the prior that keeps counts for what is unseen."""
    return float(UNSEEN_COUNT * np.log1p(-np.bincount(given, table)).sum())


def objective(corpus: TokenizedCorpus, model: Model, likelihood: float) -> float:
    """What training without agreement cannot make less."""
    lexicon = model.lexicon
    nulls = float(np.log(lexicon.target_null).sum() + np.log(lexicon.source_null).sum())
    return likelihood + nulls + left(lexicon.forward, corpus.source_of) + left(lexicon.backward, corpus.target_of)


def em_step(corpus: TokenizedCorpus, model: Model) -> tuple[Model, float]:
    """One iteration without agreement, and the likelihood before it."""
    expected = e_step(corpus, model, agreement=False)
    lexicon = m_step(corpus, expected.counts)
    return Model(lexicon, expected.forward.scores(), expected.backward.scores()), expected.counts.likelihood


def test_no_iteration_makes_it_less_likely() -> None:
    draw = np.random.default_rng(1)
    pairs: Pairs = []
    for _ in range(200):
        source = draw.integers(20, size=draw.integers(1, 8)).tolist()
        remaining = [word for word in source if draw.random() < 0.9] or source
        pairs.append(([f"s{word}" for word in source], [f"t{word}" for word in reversed(remaining)]))
    corpus = corpus_of(pairs)
    model, before = em_step(corpus, Model(uniform_lexicon(corpus), FLAT, FLAT))
    seen = []
    for _ in range(8):
        last = model
        model, likelihood = em_step(corpus, last)
        seen.append(objective(corpus, last, likelihood))
    assert all(after >= early - 1e-3 for early, after in pairwise(seen))
    assert seen[-1] > seen[0] + 10 and likelihood > before
    back, on = model.forward[MAX_JUMP], model.forward[MAX_JUMP + 2]
    assert back > 10 * on  # the order is reversed


def test_threads_change_nothing() -> None:
    draw = np.random.default_rng(2)
    pairs = [
        ([f"s{word}" for word in draw.integers(9, size=size)], [f"t{word}" for word in draw.integers(9, size=size + 1)])
        for size in draw.integers(1, 20, size=100).tolist()
    ]
    corpus = corpus_of(pairs)
    model = Model(uniform_lexicon(corpus), FLAT, FLAT)
    one, three = (e_step(corpus, model, threads) for threads in (1, 3))
    assert (one.counts.forward == three.counts.forward).all() and (one.forward.sums == three.forward.sums).all()
    groups = [group.numbers.tolist() for group, _, _ in posteriors(corpus, model, 3)]
    assert groups == [group.numbers.tolist() for group in corpus.groups]
