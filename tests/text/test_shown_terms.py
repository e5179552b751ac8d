"""Terms shown in the sources of training pairs."""

import random

import pytest

from regard.text.examples import Examples, Variety
from regard.text.pairs import Pair
from regard.text.shown_terms import MAX_FORMS, MAX_SHOWN, LinkedTerm, annotation, with_annotations, with_marks
from regard.text.vocabulary import TERM_MARKS, learn_subwords

SOURCE, TARGET = "Rahul has two good keys.", "राहुलकडे दोन चांगल्या Chaavyaa आहेत."
TERMS = [
    LinkedTerm(0, 5, "राहुलकडे", ("राहुल", "राहुलला", "राहुलने")),
    LinkedTerm(10, 13, "दोन"),
    LinkedTerm(10, 18, "दोन चांगल्या"),
    LinkedTerm(19, 23, "Chaavyaa"),
]


def shown(seed: int) -> str:
    text = with_annotations(*with_marks(SOURCE, TERMS, random.Random(seed)))
    return text.replace(TERM_MARKS[0], "⟨").replace(TERM_MARKS[1], "⟩")


def test_terms_follow_their_words() -> None:
    texts = {shown(seed) for seed in range(300)}
    assert "Rahul has two good keys⟨ Chaavyaa⟩." in texts and "Rahul has two good⟨ दोन चांगल्या⟩ keys." in texts
    assert "Rahul⟨ राहुलकडे⟩ has two⟨ दोन⟩ good keys⟨ Chaavyaa⟩." in texts
    assert {text.count("⟩") for text in texts} == {1, 2, MAX_SHOWN}
    for text in texts:
        assert not ("⟨ दोन⟩" in text and "चांगल्या" in text), "terms do not overlap"


def test_some_terms_are_shown_in_several_forms_of_which_one_is_right() -> None:
    forms = [tuple(text[7 : text.index("⟩")].split("⟨ ")) for seed in range(600) if (text := shown(seed))[5] == "⟨"]
    assert all("राहुलकडे" in each for each in forms)
    several = [each for each in forms if len(each) > 1]
    assert 0.15 < len(several) / len(forms) < 0.35
    assert max(map(len, several)) == MAX_FORMS and len({each.index("राहुलकडे") for each in several}) == MAX_FORMS


def test_without_terms_a_source_stays() -> None:
    for source in ("a b", f"a{TERM_MARKS[0]} b"):
        assert with_annotations(*with_marks(source, [], random.Random(1))) == source


def test_a_form_has_the_pieces_that_it_has_in_a_target() -> None:
    vocabulary = learn_subwords([SOURCE, TARGET] * 5, 80, further=TERM_MARKS)
    opening, closing = (vocabulary.tokens[mark] for mark in TERM_MARKS)
    for before in ("keys", "keys.", "यी"):
        tokens = vocabulary.encode(before + annotation(["दोन", "Chaavyaa"]) + ".")
        expected = [*vocabulary.encode(before), opening, *vocabulary.encode("दोन"), opening]
        assert tokens[: len(expected)] == expected
        assert tokens[len(expected) :][:-1] == [*vocabulary.encode("Chaavyaa"), closing]


@pytest.mark.parametrize("segmentation", [0.0, 0.1])
def test_a_fraction_of_the_examples_shows_terms(segmentation: float) -> None:
    pairs = [Pair(SOURCE, TARGET, line) for line in range(400)]
    vocabulary = learn_subwords([SOURCE, TARGET] * 5, 60, further=TERM_MARKS)
    variety = Variety(segmentation, lower_case=0.5, no_punctuation=0.2, terms=0.25)
    examples = Examples(pairs, vocabulary, vocabulary, variety, 1, terms=[TERMS] * 300)
    texts = [vocabulary.decode(source) for source, _ in examples.epoch(0)]
    has = [TERM_MARKS[0] in text for text in texts]
    assert 45 < sum(has[:300]) < 105 and not any(has[300:])
    lower = [text for text in texts if text.startswith("rahul") and "haavyaa" in text]
    assert lower and all("Chaavyaa" in text for text in lower), "a term keeps its case in a source in lower case"
    assert examples.epoch(0) == examples.epoch(0) != examples.epoch(1)


def test_without_the_key_examples_are_the_same() -> None:
    pairs = [Pair(SOURCE, TARGET, line) for line in range(100)]
    vocabulary = learn_subwords([SOURCE, TARGET] * 5, 60)
    variety = Variety(0.1, 0.2, 0.2, 0.2)
    plain, other = (Examples(pairs, vocabulary, vocabulary, variety, 1, terms=terms) for terms in ((), [TERMS] * 100))
    assert plain.epoch(3) == other.epoch(3)
