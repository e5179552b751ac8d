"""New sentences by crossover of training sentences."""

from __future__ import annotations

from itertools import product

import pytest

from regard.experiments.best import recombination
from regard.experiments.best.recombination import recombined
from regard.text.normal import match_key

SUBJECTS = ["I", "We", "My friends", "The old neighbours", "You"]
VERBS = ["want to", "used to", "have to"]
RESTS = ["go home.", "read the paper.", "walk in the park.", "eat at noon.", "swim today?"]
SENTENCES = [" ".join(parts) for parts in list(product(SUBJECTS, VERBS, RESTS))[::2]]


def trigrams(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return set(zip(words, words[1:], words[2:], strict=False))


def test_the_beginning_of_one_sentence_and_the_end_of_another_meet_at_a_pivot() -> None:
    sentences = ["She had to wait an hour.", "I want to wait here.", "She came here.", "The train had stopped here."]
    assert recombined(sentences, 9, 1) == ["She had to wait here."]


def test_the_result_is_a_function_of_the_arguments() -> None:
    new = recombined(SENTENCES, 20, 7)
    assert len(new) == 20
    assert recombined(SENTENCES, 20, 7) == new
    assert recombined(SENTENCES, 20, 8) != new


@pytest.mark.parametrize("count", [0, 1, 5, 12])
def test_no_more_than_asked_for_are_made(count: int) -> None:
    assert recombined(SENTENCES, count, 7) == recombined(SENTENCES, 20, 7)[:count]


def test_sentences_are_new_and_distinct() -> None:
    new = recombined(SENTENCES, 1000, 1)
    keys = {match_key(text) for text in new}
    assert len(keys) == len(new) >= 20
    assert keys.isdisjoint(map(match_key, SENTENCES))


def test_excluded_sentences_are_not_made_whatever_their_case_and_punctuation() -> None:
    new = recombined(SENTENCES, 1000, 1)
    excluded = (text.upper().strip(".?") + " !" for text in new[::2])
    assert set(recombined(SENTENCES, 1000, 1, excluded)) == set(new[1::2])


def test_every_three_consecutive_words_occur_in_training() -> None:
    attested = set().union(*map(trigrams, SENTENCES))
    longest = max(len(text.split()) for text in SENTENCES)
    for text in recombined(SENTENCES, 1000, 1):
        assert trigrams(text) <= attested
        assert len(text.split()) <= longest


def test_words_that_never_occur_together_are_not_joined() -> None:
    sentences = ["Mix three eggs and a lemon.", "He fed the eggs and a hen."]
    assert recombined(sentences, 9, 1) == []
    attesting = ["Mix it for a hen.", "These three are for a hen."]
    assert recombined([*sentences, *attesting], 9, 1) == ["Mix three eggs and a hen."]


def test_the_end_of_a_sentence_is_replaced_by_one_with_the_same_punctuation() -> None:
    others = ["They like to read books.", "Do what you please with books."]
    assert recombined(["Do you like to read it?", *others], 9, 1) == []
    assert recombined(["Do you like to read it, Tom.", *others], 9, 1) == []
    assert recombined(["Do you like to read it.", *others], 9, 1) == ["Do you like to read books."]


@pytest.mark.parametrize(
    "sentences",
    [
        [],
        [""],
        ["One sentence is not enough for this."],
        ["All of them are equal."] * 50,
        ["ALL of them are equal.", "All of them are equal!", "all of them are equal"],
        ["No pivot here.", "None there either."],
        ["again and again and again and again and again."],
    ],
)
def test_it_ends_when_nothing_can_be_made(sentences: list[str]) -> None:
    assert recombined(sentences, 1000, 1) == []


def test_attempts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recombination, "MAX_ATTEMPTS", 0)
    assert recombined(SENTENCES, 3, 1) == []


def test_spaces_stay_as_they_are_written() -> None:
    sentences = ["She  had to\u00a0wait an hour.", "I want to wait  here.", "She came here.", "He had lived here."]
    assert recombined(sentences, 9, 1) == ["She  had to\u00a0wait  here."]


def test_in_scripts_without_spaces_a_pivot_is_three_characters() -> None:
    sentences = ["他不想去喝茶。", "我不想去看书。", "他明天看书。"]  # He does not want to drink tea. I … read. He …
    assert recombined(sentences, 9, 1) == ["他不想去看书。"]
    assert recombined(["他想去喝茶。", "我想去看书。", "他明天看书。"], 9, 1) == []
