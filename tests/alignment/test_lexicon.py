"""Model 1: a textbook's numbers, and what holds for any corpus."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment.lexicon import (
    Lexicon,
    TokenizedCorpus,
    corpus_of,
    lexicon_from_prefixes,
    m_step,
    model_one,
    model_one_counts,
    prefix_corpus,
    spelling_similarity,
    uniform_lexicon,
)

TEXTBOOK = [(["das", "haus"], ["the", "house"]), (["das", "buch"], ["the", "book"]), (["ein", "buch"], ["a", "book"])]

words = st.lists(st.sampled_from(["ab", "abcdef", "abcdeg", "x1", "xyz", "é"]), max_size=5)
corpora = st.lists(st.tuples(words, words), max_size=12)


def pairs_of(corpus: TokenizedCorpus, table: np.ndarray) -> dict[tuple[str, str], float]:
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
def test_each_cell_has_its_word_pair(pairs: list[tuple[list[str], list[str]]]) -> None:
    corpus = corpus_of(pairs)
    seen = []
    for group in corpus.groups:
        cells = corpus.cells[group.cells].reshape(group.shape)
        for number, table in zip(group.numbers.tolist(), cells, strict=True):
            result = [(corpus.sources[corpus.source_of[k]], corpus.targets[corpus.target_of[k]]) for k in table.ravel()]
            assert result == list(product(*pairs[number]))
            seen.append(number)
    assert sorted(seen) == [number for number, sides in enumerate(pairs) if all(sides)]
    assert len(set(zip(corpus.source_of.tolist(), corpus.target_of.tolist(), strict=True))) == len(corpus.source_of)


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
        whole = np.bincount(words, np.bincount(corpus.cells, counts.forward, len(words)))
        np.testing.assert_allclose(np.bincount(words, table), whole / (whole + 2), atol=1e-5)


def test_likeness_is_the_share_of_the_beginning() -> None:
    ours = ["commission", "1984", ",", "nation", "haus", "present", "abcdefghijklmnop"]
    theirs = ["commissaire", "1984", ",", "1985", "हाऊस", "présente", "abcdefghijklmnop"]
    corpus = corpus_of([(ours, theirs)])
    table = pairs_of(corpus, spelling_similarity(corpus))
    assert table["commission", "commissaire"] == pytest.approx(7 / 11)
    assert table["1984", "1984"] == table[",", ","] == table["abcdefghijklmnop", "abcdefghijklmnop"] == 1
    assert table["1984", "1985"] == pytest.approx(0.75)
    assert table["present", "présente"] == pytest.approx(7 / 8)
    assert table["nation", "1984"] == table["haus", "हाऊस"] == table["nation", ","] == 0


def test_beginnings_hold_forms_together_but_not_numbers() -> None:
    corpus = corpus_of([(["geht", "gehts", "gehtst", "19840", "19841"], ["goes", ","])])
    short = prefix_corpus(corpus)
    assert short.corpus.sources == ["geht", "19840", "19841"] and short.corpus.targets == ["goes", ","]
    assert short.sources.tolist() == [0, 0, 0, 1, 2]
    (group,) = short.corpus.groups
    assert group.source.tolist() == [[0, 0, 0, 1, 2]]
    whole, cut = pairs_of(corpus, short.pairs), pairs_of(short.corpus, np.arange(6))
    assert all(cut[ours[:4] if ours[0] == "g" else ours, theirs] == number for (ours, theirs), number in whole.items())


def test_forms_inherit_as_often_as_they_are_seen() -> None:
    corpus = corpus_of([(["go"], ["geht", "gehts", "geht"]), (["go"], ["geht"])])
    short = prefix_corpus(corpus)
    lexicon = Lexicon(*(np.array([value], np.float32) for value in (0.8, 0.5, 0.1, 0.2)))
    result = lexicon_from_prefixes(corpus, short, lexicon)
    assert pairs_of(corpus, result.forward) == pytest.approx({("go", "geht"): 0.6, ("go", "gehts"): 0.2})
    assert pairs_of(corpus, result.backward) == pytest.approx({("go", "geht"): 0.5, ("go", "gehts"): 0.5})
    np.testing.assert_allclose(result.target_null, [0.075, 0.025], atol=1e-6)
