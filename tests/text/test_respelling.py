"""Sources are respelt as the vocabulary knows them, character for character."""

import pytest
from hypothesis import given, settings

from regard.text.normal import tidy
from regard.text.respelling import respelled
from regard.text.vocabulary import Vocabulary, learn_subwords, learn_words
from tests.text.test_vocabulary import subwords, texts, words

SENTENCES = [
    "Rahul is a good boy.",
    "The boy doesn't read a book.",
    "I don't live in the USA.",
    "Is Rahul in the USA?",
    'He said: "The book is good."',
]


def known(repeats: int = 20) -> Vocabulary:
    return learn_subwords(SENTENCES * repeats, 250)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RAHUL IS A GOOD BOY.", "Rahul is a good boy."),
        ("RAHUL IS A GOOD BOY", "Rahul is a good boy"),
        ("rahul is a good boy", "Rahul is a good boy"),
        ("THE BOY DOESN'T READ A BOOK.", "The boy doesn't read a book."),
        ("the boy doesn’t read a book.", "The boy doesn't read a book."),
        ("IS RAHUL IN THE USA?", "Is Rahul in the USA?"),
        ("is rahul in the usa?", "Is Rahul in the USA?"),
        ("BOOK", "book"),
        ("Book", "book"),
        ("rahul", "Rahul"),
        ("usa", "USA"),
        ("RAHUL IS A GOOD BOY 😀", "Rahul is a good boy 😀"),
        ("USA", "USA"),
        ("He said: “The book is good.”", 'He said: "The book is good."'),
        ("He said: «The book is good.»", 'He said: "The book is good."'),
        ("The Boy reads a book.", "The Boy reads a book."),  # a case of its own says something
        ("I", "I"),
        ("", ""),
        ("?!", "?!"),
        ("42", "42"),
    ],
)
def test_texts_become_what_training_saw(text: str, expected: str) -> None:
    assert respelled(known(), text) == expected


def test_training_texts_stay_as_they_are() -> None:
    for sentence in SENTENCES:
        assert respelled(known(), sentence) == sentence
    lower, upper = ([change(text) for text in SENTENCES] for change in (str.lower, str.upper))
    for texts_of_one_case in (lower, upper):
        vocabulary = learn_subwords(texts_of_one_case * 20, 250)
        assert [respelled(vocabulary, text) for text in texts_of_one_case] == texts_of_one_case


def test_quotation_marks_are_those_of_the_training_texts() -> None:
    printed = [text.replace("'", "’").replace(' "', " “").replace('"', "”") for text in SENTENCES]
    vocabulary = learn_subwords(printed * 20, 250)
    assert [respelled(vocabulary, text) for text in SENTENCES] == printed
    assert [respelled(known(), text) for text in printed] == SENTENCES


def test_a_vocabulary_of_letters_leaves_all_case_alone() -> None:
    letters = learn_subwords([text + text.upper() for text in SENTENCES], 1)
    for text in ("RAHUL IS A GOOD BOY", "rahul is a good boy", "Boy", "usa"):
        assert respelled(letters, text) == text


def test_a_vocabulary_of_words_prefers_known_words() -> None:
    vocabulary = learn_words(SENTENCES)
    assert respelled(vocabulary, "He doesn’t live") == "He doesn't live"
    assert vocabulary.encode(respelled(vocabulary, "THE BOY")) == vocabulary.encode("the boy")


@pytest.mark.parametrize(
    "text", ["İSTANBUL İYİ", "STRASSE DER STRAßE", "ΟΔΟΣ ΚΑΙ ΟΔΟΣ", "J\u030cA J\u030c", "ŉ ǰ ﬁ", "ǅ Ǆ"]
)
def test_letters_whose_case_has_another_length_keep_their_place(text: str) -> None:
    assert len(respelled(known(), tidy(text))) == len(tidy(text))


@settings(max_examples=300, deadline=None)
@given(texts)
def test_lengths_and_blanks_stay(text: str) -> None:
    for changed in (text, text.upper(), text.lower(), text.replace("'", "’")):
        tidied = tidy(changed)
        for vocabulary in (subwords(), words()):
            result = respelled(vocabulary, tidied)
            assert tidy(result) == result and len(result) == len(tidied)
            assert [x == " " for x in result] == [x == " " for x in tidied]
