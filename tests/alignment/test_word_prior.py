"""What rare words share: spelling and prefixes."""

import numpy as np
import pytest

from regard.alignment.corpus import corpus_of
from regard.alignment.lexicon import Lexicon, model_one_counts, uniform_lexicon
from regard.alignment.word_prior import lexicon_from_prefixes, prefixes_of, spelling_similarity
from tests.alignment.test_lexicon import pairs_of


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
    short = prefixes_of(corpus)
    assert short.words.sources == ["geht", "19840", "19841"] and short.words.targets == ["goes", ","]
    assert short.sources.tolist() == [0, 0, 0, 1, 2]
    assert short.words.source_counts.tolist() == [3, 1, 1] and short.words.target_counts.tolist() == [1, 1]
    whole, cut = pairs_of(corpus, short.pairs), pairs_of(short.words, np.arange(6))
    assert all(cut[ours[:4] if ours[0] == "g" else ours, theirs] == number for (ours, theirs), number in whole.items())


def test_forms_inherit_as_often_as_they_are_seen() -> None:
    corpus = corpus_of([(["go"], ["geht", "gehts", "geht"]), (["go"], ["geht"])])
    short = prefixes_of(corpus)
    lexicon = Lexicon(*(np.array([value], np.float32) for value in (0.8, 0.5, 0.1, 0.2)))
    result = lexicon_from_prefixes(corpus, short, lexicon)
    assert pairs_of(corpus, result.forward) == pytest.approx({("go", "geht"): 0.6, ("go", "gehts"): 0.2})
    assert pairs_of(corpus, result.backward) == pytest.approx({("go", "geht"): 0.5, ("go", "gehts"): 0.5})
    np.testing.assert_allclose(result.target_null, [0.075, 0.025], atol=1e-6)


def test_tables_of_prefixes_are_those_of_a_corpus_of_prefixes() -> None:
    """Tied tables of words give the counts that a corpus of the prefixes themselves gives."""
    pairs = [(["walked", "home"], ["marcher", "maison"]), (["walks"], ["marches", "la"]), (["home"], ["maisonnette"])]
    corpus = corpus_of(pairs)
    short = prefixes_of(corpus)
    cut = corpus_of([([word[:4] for word in source], [word[:4] for word in target]) for source, target in pairs])
    tied = short.tied(model_one_counts(corpus, short.expanded(uniform_lexicon(short.words))))
    expected = model_one_counts(cut, uniform_lexicon(cut))
    assert pairs_of(short.words, tied.forward) == pytest.approx(pairs_of(cut, expected.forward))
    np.testing.assert_allclose(tied.target_null, expected.target_null)
    assert tied.likelihood == pytest.approx(expected.likelihood, rel=1e-6)
