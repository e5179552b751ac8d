"""Made-up sources."""

from __future__ import annotations

from regard.text.pseudo_sources import WORD, pseudo_sources, typical_words, vocabulary_words
from regard.text.vocabulary import learn_subwords, learn_words

OLD = [
    f"the {thing} is {word}." for thing in ("house", "tree", "bird") for word in ("old", "new", "small", "green")
] * 20
NEW = [f"Zora sees the {thing}." for thing in ("house", "tree", "bird", "sky", "sea", "hill")]


def test_words_of_the_vocabulary_replace_some_and_all_typical_words() -> None:
    for vocabulary in (learn_subwords(OLD, 60), learn_words(OLD)):
        words = vocabulary_words(vocabulary)
        assert {"the", "is", "house"} <= set(words) and all(map(WORD.fullmatch, words))
        made = pseudo_sources(NEW, vocabulary, 40, seed=1)
        assert 10 < len(made) == len(set(made)) <= 40 and not set(made) & set(NEW)
        assert all(source.endswith(".") and len(source.split()) == 4 for source in made), "one word for each"
        replacements = {word for source in made for word in WORD.findall(source)} - {
            word for source in NEW for word in WORD.findall(source)
        }
        assert replacements and replacements <= set(words)
        assert made == pseudo_sources(NEW, vocabulary, 40, seed=1) != pseudo_sources(NEW, vocabulary, 40, seed=2)


def test_typical_words_are_those_of_an_unlikely_frequency() -> None:
    words = [f"w{number}" for number in range(1, 1001)]
    texts = ["w1 w2 w900 unseen"] * 20 + ["w800"] * 3
    assert typical_words(texts, words) == {"w900", "unseen"}


def test_nothing_comes_from_nothing() -> None:
    assert pseudo_sources([], learn_words(OLD), 10, 1) == []
