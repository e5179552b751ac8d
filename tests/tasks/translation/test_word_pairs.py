"""Pairs of single words: those that translate each other, spelt as inside sentences."""

from __future__ import annotations

import pytest

from regard.config.folder import Vocabularies
from regard.tasks.translation import word_pairs as module
from regard.tasks.translation.word_pairs import word_pairs
from regard.text.pairs import Pair
from regard.text.vocabulary import learn_subwords, learn_words
from tests.text.test_vocabulary import subwords
from tests.training import toy

PAIRS = [Pair(*texts, line) for line, texts in enumerate(toy.PAIRS, 1)]
BOTH = Vocabularies(subwords(), subwords())


def texts(pairs: list[Pair]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def test_words_that_translate_each_other_are_paired() -> None:
    result = dict(texts(word_pairs(PAIRS, BOTH, 100)))
    right = {**toy.SUBJECTS, **toy.VERBS, **toy.OBJECTS}
    single = {source.split()[-1]: target for source, target in right.items() if " " not in target}
    assert {"Rahul", "Sita", "mango", "book", "sees", "boy"} <= set(result)
    assert all(result[word] == single[word] for word in set(result) & set(single))
    assert not any(" " in text or "." in text for pair in result.items() for text in pair)


def test_the_limit_keeps_the_most_frequent() -> None:
    every = texts(word_pairs(PAIRS, BOTH, 100))
    assert texts(word_pairs(PAIRS, BOTH, 3)) == every[:3]
    assert word_pairs(PAIRS, BOTH, 0) == []


def test_the_capital_of_a_sentence_is_not_the_word_s() -> None:
    sentences = [("Books are good.", "Gut sind Bücher."), ("I see books.", "Ich sehe Bücher."), ("I see Tom.", "Tom!")]
    sentences.append(("Good!", "Gut!"))
    pairs = [Pair(*sentence, 1) for sentence in sentences * 50]
    result = texts(word_pairs(pairs, BOTH, 100))
    assert ("books", "Bücher") in result and ("Tom", "Tom") in result and ("good", "Gut") in result


def test_of_many_pairs_the_shortest_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    short = [Pair("Tree!", "झाड!", 1)] * 50
    assert {("Tree", "झाड"), ("mango", "आंबा")} <= set(texts(word_pairs([*PAIRS, *short], BOTH, 100)))
    monkeypatch.setattr(module, "MAX_CELLS", 60)
    assert texts(word_pairs([*PAIRS, *short], BOTH, 100)) == [("Tree", "झाड")]


@pytest.mark.parametrize(
    "sentences",
    [
        [("?!", "...")],
        [("a", "b")],
        [("我走了。", "私は行きました。"), ("你好吗？", "元気ですか？")],  # no blanks between words
    ],
)
def test_where_there_are_no_words_there_are_no_pairs(sentences: list[tuple[str, str]]) -> None:
    pairs = [Pair(*sentence, line) for line, sentence in enumerate(sentences, 1)]
    assert word_pairs(pairs, BOTH, 100) == []


def test_vocabularies_of_words_have_pairs_too() -> None:
    vocabulary = learn_words([text for pair in toy.PAIRS for text in pair])
    assert ("mango", "आंबा") in texts(word_pairs(PAIRS, Vocabularies(vocabulary, vocabulary), 100))


def test_joiners_belong_to_words() -> None:
    vocabulary = learn_subwords(["x"], 10)
    pairs = [Pair("the jobs", "त्या नोकर\u200d्या", 1), Pair("the man", "त्या माणूस", 2)] * 50
    assert ("jobs", "नोकर\u200d्या") in texts(word_pairs(pairs, Vocabularies(vocabulary, vocabulary), 100))
