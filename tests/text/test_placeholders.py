"""Placeholders in training pairs."""

import random

from regard.text.examples import Examples, Variety
from regard.text.pairs import Pair
from regard.text.placeholders import MAX_PER_PAIR, Anchor, equal_words, with_placeholders, word_spans
from regard.text.vocabulary import PLACEHOLDERS, learn_subwords

SOURCE, TARGET = "Rahul has two keys.", "राहुलकडे दोन चाव्या आहेत."


def anchors(*numbers: tuple[int, int]) -> list[Anchor]:
    sources, targets = word_spans(SOURCE), word_spans(TARGET)
    return [Anchor(sources[i], targets[j]) for i, j in numbers]


def test_placeholders_of_the_target_are_those_that_replace_words_of_the_source() -> None:
    seen = set()
    for seed in range(200):
        source, target = with_placeholders(SOURCE, TARGET, anchors((0, 0), (2, 1), (3, 2)), random.Random(seed))
        marks = [[letter for letter in text if letter in PLACEHOLDERS] for text in (source, target)]
        assert 1 <= len(marks[0]) <= MAX_PER_PAIR and len(set(marks[0])) == len(marks[0])
        assert marks[1] == [mark for mark in marks[0] if mark in marks[1]]  # these anchors are in the same order
        assert len(word_spans(source)) + len(marks[1]) == len(word_spans(SOURCE))
        assert len(word_spans(target)) + len(marks[1]) == len(word_spans(TARGET))
        seen |= {(len(marks[0]), len(marks[1]))}
    assert {count for count, _ in seen} == {1, 2, 3, 4} and {count for _, count in seen} == {0, 1, 2, 3}


def test_a_placeholder_replaces_both_words_or_is_inserted_into_the_source() -> None:
    shown = dict.fromkeys(map(ord, PLACEHOLDERS), "X")
    forms = set()
    for seed in range(300):
        one, two = with_placeholders(SOURCE, TARGET, anchors((2, 1)), random.Random(seed))
        if sum(map(one.count, PLACEHOLDERS)) == 1:
            forms.add((one.translate(shown), two.translate(shown)))
    assert forms == {
        ("Rahul has X keys.", "राहुलकडे X चाव्या आहेत."),
        ("Rahul has X two keys.", TARGET),
        ("Rahul X has two keys.", TARGET),
        ("X Rahul has two keys.", TARGET),
        ("Rahul has two X keys.", TARGET),
    }


def test_without_anchors_the_target_stays() -> None:
    source, target = with_placeholders(SOURCE, TARGET, [], random.Random(1))
    assert target == TARGET and source != SOURCE
    assert with_placeholders("?!", TARGET, [], random.Random(1)) == ("?!", TARGET)


def test_equal_words_are_anchors_if_they_occur_once() -> None:
    source, target = "In 1984 Anna saw 5 of 5.", "1984 में Anna ने 5 देखे."
    assert [source[slice(*each.source)] for each in equal_words(source, target)] == ["1984", "Anna"]


def test_words_have_their_marks() -> None:
    assert [TARGET[slice(*span)] for span in word_spans(TARGET)] == TARGET.rstrip(".").split()


def test_a_fraction_of_the_examples_has_placeholders() -> None:
    pairs = [Pair(SOURCE, TARGET, line) for line in range(400)]
    vocabulary = learn_subwords([SOURCE, TARGET] * 5, 60, further=PLACEHOLDERS)
    variety = Variety(segmentation=0.1, placeholders=0.25)
    examples = Examples(pairs, vocabulary, vocabulary, variety, 1, [anchors((2, 1))] * 300)
    tokens = {vocabulary.tokens[name] for name in PLACEHOLDERS}
    has = [bool(tokens & set(source)) and bool(tokens & set(target)) for source, target in examples.epoch(0)]
    assert 45 < sum(has[:300]) < 105 and not any(has[300:])
    assert examples.epoch(0) == examples.epoch(0) != examples.epoch(1)
