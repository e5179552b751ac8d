"""Model 1: a textbook's numbers, and what holds for any corpus."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment.corpus import TokenizedCorpus, WordPairs, corpus_of
from regard.alignment.lexicon import P_NULL, Lexicon, m_step, model_one, model_one_counts, uniform_lexicon

TEXTBOOK = [(["das", "haus"], ["the", "house"]), (["das", "buch"], ["the", "book"]), (["ein", "buch"], ["a", "book"])]

words = st.lists(st.sampled_from(["ab", "abcdef", "abcdeg", "x1", "xyz", "é"]), max_size=5)
corpora = st.lists(st.tuples(words, words), max_size=12)


def pairs_of(corpus: WordPairs, table: np.ndarray) -> dict[tuple[str, str], float]:
    numbers = zip(corpus.source_of.tolist(), corpus.target_of.tolist(), table.tolist(), strict=True)
    return {(corpus.sources[source], corpus.targets[target]): value for source, target, value in numbers}


def plain(corpus: TokenizedCorpus, lexicon: Lexicon, iterations: int) -> Lexicon:
    """Without null, agreement and a prior, as the textbook has it."""
    for _ in range(iterations):
        lexicon = replace(lexicon, target_null=0 * lexicon.target_null, source_null=0 * lexicon.source_null)
        lexicon = m_step(corpus, model_one_counts(corpus, lexicon, agreement=False), unseen=0.0)
    return lexicon


@pytest.mark.parametrize(
    ("iterations", "expected"),
    [
        (1, (0.5, 0.25, 0.25, 0.5, 0.5)),
        (2, (0.6364, 0.1818, 0.1818, 0.4286, 0.5714)),
        (3, (0.7479, 0.1208, 0.1313, 0.3466, 0.6534)),
        (300, (1.0, 0.0, 0.0, 0.0, 1.0)),
    ],
)
def test_the_textbooks_table(iterations: int, expected: tuple[float, ...]) -> None:
    """The textbook's example of three pairs (Koehn 2010, Statistical Machine Translation): all alike at first."""
    corpus = corpus_of(TEXTBOOK)
    alike = np.full(len(corpus.source_of), 0.25, np.float32)
    result = plain(corpus, replace(uniform_lexicon(corpus), forward=alike, backward=alike), iterations)
    table = pairs_of(corpus, result.forward)
    keys = [("das", "the"), ("das", "book"), ("das", "house"), ("haus", "the"), ("haus", "house")]
    np.testing.assert_allclose([table[key] for key in keys], expected, atol=5e-3 if iterations > 3 else 6e-5)


def test_with_null_agreement_and_what_is_unseen_the_best_stays_the_best() -> None:
    corpus = corpus_of(TEXTBOOK * 50)
    result = model_one(corpus, 10)
    for table in (pairs_of(corpus, result.forward), pairs_of(corpus, result.backward)):
        for ours, theirs in (("das", "the"), ("haus", "house"), ("buch", "book"), ("ein", "a")):
            others = [value for (one, two), value in table.items() if (one == ours) != (two == theirs)]
            assert table[ours, theirs] > 0.5 > 5 * max(others)


@given(corpora)
def test_posteriors_by_brute_force(pairs: list[tuple[list[str], list[str]]]) -> None:
    """The definition, word by word, in both directions, with random tables; repeated pairs count as often."""
    corpus = corpus_of(pairs)
    draw = np.random.default_rng(3)
    sizes = (*[len(corpus.source_of)] * 2, len(corpus.targets), len(corpus.sources))
    lexicon = Lexicon(*(draw.random(size).astype(np.float32) for size in sizes))
    forward, backward = (pairs_of(corpus, table) for table in (lexicon.forward, lexicon.backward))
    target_null = dict(zip(corpus.targets, lexicon.target_null.tolist(), strict=True))
    source_null = dict(zip(corpus.sources, lexicon.source_null.tolist(), strict=True))
    expected = dict.fromkeys(forward, 0.0)
    by_null = dict.fromkeys(corpus.targets, 0.0)
    for source, target in pairs:
        for one, other in product(source, target):
            if not (source and target):
                continue
            there = sum(forward[each, other] for each in source) * (1 - P_NULL) / len(source)
            back = sum(backward[one, each] for each in target) * (1 - P_NULL) / len(target)
            posterior = forward[one, other] * (1 - P_NULL) / len(source) / (there + P_NULL * target_null[other])
            agreed = backward[one, other] * (1 - P_NULL) / len(target) / (back + P_NULL * source_null[one])
            expected[one, other] += posterior * agreed
            by_null[other] += (1 / len(source)) * (1 - there / (there + P_NULL * target_null[other]))
    counts = model_one_counts(corpus, lexicon)
    assert pairs_of(corpus, counts.forward) == pytest.approx(expected, abs=1e-4)
    assert dict(zip(corpus.targets, counts.target_null.tolist(), strict=True)) == pytest.approx(by_null, abs=1e-4)


@settings(deadline=None)
@given(corpora.filter(lambda pairs: any(all(sides) for sides in pairs)))
def test_no_iteration_makes_it_less_likely(pairs: list[tuple[list[str], list[str]]]) -> None:
    """One more for each word that null says is a prior: what cannot fall is the likelihood times that prior."""
    corpus = corpus_of(pairs)
    lexicon = uniform_lexicon(corpus)
    before = -np.inf
    for _ in range(8):
        counts = model_one_counts(corpus, lexicon, agreement=False)
        after = counts.likelihood + np.log(lexicon.target_null).sum() + np.log(lexicon.source_null).sum()
        assert after >= before - 1e-4 * max(1, abs(after))
        before, lexicon = after, m_step(corpus, counts, unseen=0.0)


@given(corpora)
def test_shares_and_what_is_left_for_the_unseen_are_one(pairs: list[tuple[list[str], list[str]]]) -> None:
    corpus = corpus_of(pairs)
    counts = model_one_counts(corpus, uniform_lexicon(corpus))
    result = m_step(corpus, counts, unseen=2.0)
    for words, table in ((corpus.source_of, result.forward), (corpus.target_of, result.backward)):
        whole = np.bincount(words, counts.forward)
        np.testing.assert_allclose(np.bincount(words, table), whole / (whole + 2), atol=1e-5)
