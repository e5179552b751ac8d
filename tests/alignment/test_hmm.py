"""The aligner: exact beliefs, training that improves, links that are right, alike each time, for any input."""

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard.samples
from regard.alignment.error_rate import error_rate
from regard.alignment.hmm import MAX_JUMP, Model, em_step, forward_backward, statistical_links, transitions
from regard.alignment.lexicon import UNSEEN_COUNT, Floats, Ints, TokenizedCorpus, corpus_of, uniform_lexicon
from regard.alignment.links import read_gold
from regard.alignment.tokens import split_punctuation

Pairs = list[tuple[list[str], list[str]]]
FLAT = np.ones(2 * MAX_JUMP + 3)


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
def test_beliefs_are_those_of_all_ways_enumerated(words: int, places: int) -> None:
    draw = np.random.default_rng(words * 10 + places)
    message, by_none = draw.random((words, 2, places)), draw.random((words, 2))
    table = transitions(draw.random(FLAT.shape), places).astype(np.float64)
    result = forward_backward(message, by_none, table, 0.3)
    whole = [enumerated(message[:, one], by_none[:, one], table, 0.3) for one in range(2)]
    assert result.likelihood == pytest.approx(sum(np.log(total) for total, _, _ in whole))
    np.testing.assert_allclose(result.positions, np.stack([believed for _, believed, _ in whole], 1), atol=1e-9)
    np.testing.assert_allclose(result.jumps, sum(jumps for _, _, jumps in whole), atol=1e-9)


def test_jumps_of_one_width_are_alike() -> None:
    table = transitions(np.arange(1.0, len(FLAT) + 1), 4)
    np.testing.assert_allclose(table.sum(1), 1, atol=1e-6)
    # From −1 to 0 and from 0 to 1 are the same jump, over the places that each can reach.
    assert table[0, 0] / table[0, 1] == pytest.approx(table[1, 1] / table[1, 2])


def left(table: Floats, given: Ints) -> float:
    """The logarithm of the prior that keeps counts for what is unseen."""
    return float(UNSEEN_COUNT * np.log1p(-np.bincount(given, table)).sum())


def objective(corpus: TokenizedCorpus, model: Model, likelihood: float) -> float:
    """What training without agreement cannot make less."""
    lexicon = model.lexicon
    nulls = float(np.log(lexicon.target_null).sum() + np.log(lexicon.source_null).sum())
    return likelihood + nulls + left(lexicon.forward, corpus.source_of) + left(lexicon.backward, corpus.target_of)


def test_no_iteration_makes_it_less_likely() -> None:
    draw = np.random.default_rng(1)
    pairs: Pairs = []
    for _ in range(200):
        source = draw.integers(20, size=draw.integers(1, 8)).tolist()
        remaining = [word for word in source if draw.random() < 0.9] or source
        pairs.append(([f"s{word}" for word in source], [f"t{word}" for word in reversed(remaining)]))
    corpus = corpus_of(pairs)
    model, before = em_step(corpus, Model(uniform_lexicon(corpus), FLAT, FLAT), agreement=False)
    seen = []
    for _ in range(8):
        last = model
        model, likelihood = em_step(corpus, last, agreement=False)
        seen.append(objective(corpus, last, likelihood))
    assert all(after >= early - 1e-3 for early, after in pairwise(seen))
    assert seen[-1] > seen[0] + 10 and likelihood > before
    back, on = model.forward[MAX_JUMP], model.forward[MAX_JUMP + 2]
    assert back > 10 * on  # the order is reversed


def test_words_and_their_order_are_found() -> None:
    """Verbs last, articles that are said by none, one word in two."""
    subjects = [("birds", "vögel"), ("dogs", "hunde"), ("cats", "katzen"), ("boys", "jungen"), ("girls", "mädchen")]
    verbs = [("see", "sehen"), ("hear", "hören"), ("love", "lieben"), ("wake", "wecken"), ("find", "finden")]
    pairs: Pairs = []
    for (one, eins), (verb, tun), (two, zwei) in product(subjects, verbs, subjects):
        if one != two:
            pairs.append((["the", one, verb, two], [eins, zwei, tun]))
    result = statistical_links(pairs)
    wanted = {(1, 0), (3, 1), (2, 2)}
    assert all(wanted <= links for links in result)
    assert sum(len(links) for links in result) <= len(pairs) * 4


def test_the_other_way_round_gives_the_same_links() -> None:
    turned = [(target, source) for source, target in sample()[0]]
    there, back = statistical_links(sample()[0]), statistical_links(turned)
    same = sum(one == {(source, target) for target, source in two} for one, two in zip(there, back, strict=True))
    assert same > 0.99 * len(there)


def sample() -> tuple[Pairs, int]:
    """The sample corpus, the sentences with links written by hand first, and how many these are."""
    folder = Path(regard.samples.__file__).parent / "english-marathi"
    texts = [(folder / f"links.{end}").read_text("utf-8").splitlines() for end in ("src", "tgt")]
    pairs = [(ours.lower().split(), theirs.split()) for ours, theirs in zip(*texts, strict=True)]
    known = len(pairs)
    for line in (folder / "train.tsv").read_text("utf-8").splitlines():
        source, target = line.split("\t")[:2]
        pairs.append((split_punctuation(source.lower()).split(), split_punctuation(target).split()))
    return pairs, known


def test_the_sample_corpus_is_linked_as_people_do_and_the_same_each_time() -> None:
    pairs, known = sample()
    links = statistical_links(pairs)
    gold = read_gold(Path(regard.samples.__file__).parent / "english-marathi" / "links.talp")
    assert error_rate(links[:known], gold).aer < 0.07
    assert links == statistical_links(pairs)


def test_sides_without_words_have_no_links() -> None:
    assert statistical_links([]) == []
    assert statistical_links([([], []), (["a"], []), ([], ["b"])]) == [frozenset()] * 3
    result = statistical_links([([], ["b"]), *[(["a"], ["b"])] * 20, (["a"], [])])
    assert result == [frozenset(), *[frozenset({(0, 0)})] * 20, frozenset()]


def test_very_long_sentences() -> None:
    long = [f"word{number}" for number in range(200)]
    pairs = [(long, long), (long, long[:1]), (long[:1], long), *[([word], [word]) for word in long]]
    result = statistical_links(pairs)
    assert len({(number, number) for number in range(200)} & result[0]) > 190
    assert (0, 0) in result[1] and (0, 0) in result[2]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(*[st.lists(st.text(max_size=3), max_size=4)] * 2), max_size=6))
def test_any_text_has_links_within_it(pairs: Pairs) -> None:
    result = statistical_links(pairs)
    assert len(result) == len(pairs)
    for (source, target), links in zip(pairs, result, strict=True):
        assert all(0 <= one < len(source) and 0 <= two < len(target) for one, two in links)


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5])
def test_the_threshold_is_a_probability(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold: expected more than 0 and at most 1"):
        statistical_links([(["a"], ["b"])], threshold)
