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


def test_both_sides_get_the_same_placeholders() -> None:
    seen = set()
    for seed in range(200):
        source, target = with_placeholders(SOURCE, TARGET, anchors((0, 0), (2, 1), (3, 2)), random.Random(seed))
        marks = [[letter for letter in text if letter in PLACEHOLDERS] for text in (source, target)]
        assert 1 <= len(marks[0]) <= MAX_PER_PAIR and marks[0] == marks[1]  # these anchors are in the same order
        assert len(set(marks[0])) == len(marks[0])
        seen |= {(len(marks[0]), len(source.split()) > len(SOURCE.split()))}
    assert {count for count, _ in seen} == {1, 2, 3, 4} and {inserted for _, inserted in seen} == {True, False}


def test_a_placeholder_replaces_both_words_or_stands_before_them() -> None:
    shown = dict.fromkeys(map(ord, PLACEHOLDERS), "X")
    forms = set()
    for seed in range(300):
        sides = with_placeholders(SOURCE, TARGET, anchors((2, 1)), random.Random(seed))
        forms |= (
            {tuple(side.translate(shown) for side in sides)} if sum(map(sides[0].count, PLACEHOLDERS)) == 1 else set()
        )
    assert forms == {
        ("Rahul has X keys.", "राहुलकडे X चाव्या आहेत."),
        ("Rahul has X two keys.", "राहुलकडे X दोन चाव्या आहेत."),
        ("Rahul X has two keys.", "राहुलकडे X दोन चाव्या आहेत."),
        ("X Rahul has two keys.", "राहुलकडे X दोन चाव्या आहेत."),
        ("Rahul has two X keys.", "राहुलकडे दोन X चाव्या आहेत."),
    }


def test_without_anchors_a_pair_stays() -> None:
    assert with_placeholders(SOURCE, TARGET, [], random.Random(1)) == (SOURCE, TARGET)


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
