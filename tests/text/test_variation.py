"""Other segmentations of the same text; number 0 is what `tokenizers` itself gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.normal import tidy
from regard.text.variation import Segmentations
from tests.text.test_vocabulary import sentences, subwords, texts, words

SIDES = [text for pair in sentences() for text in pair]


def cut(segmentations: Segmentations, text: str, number: int) -> list[int]:
    return [token for chunk in subwords().chunks(text) for token in segmentations(chunk, number)]


def test_number_0_is_the_vocabularys_own() -> None:
    segmentations = Segmentations(subwords(), 0.5, seed=1)
    for text in SIDES:
        assert cut(segmentations, text, 0) == subwords().encode(text)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_number_0_is_the_vocabularys_own_for_any_text(text: str) -> None:
    assert cut(Segmentations(subwords(), 0.5, seed=1), tidy(text), 0) == subwords().encode(text)


@settings(max_examples=300, deadline=None)
@given(st.text(sorted(set("".join(SIDES))), max_size=40))
def test_number_0_merges_in_the_order_learned(text: str) -> None:
    """Letters of the language in any order: many merges are possible, and which comes first matters."""
    assert cut(Segmentations(subwords(), 0.5, seed=1), tidy(text), 0) == subwords().encode(text)


@settings(max_examples=100, deadline=None)
@given(texts, st.floats(0.01, 0.99), st.integers(0, 7))
def test_others_are_the_same_text(text: str, dropout: float, number: int) -> None:
    tokens = cut(Segmentations(subwords(), dropout, seed=1), tidy(text), number)
    assert subwords().decode(tokens) == tidy(text)


def test_others_are_cut_finer_and_differ() -> None:
    segmentations = Segmentations(subwords(), 0.3, seed=1)
    assert segmentations.count == 8
    plain = [cut(segmentations, text, 0) for text in SIDES]
    for number in range(1, 8):
        other = [cut(segmentations, text, number) for text in SIDES]
        assert other != plain
        assert sum(map(len, other)) > sum(map(len, plain))
    assert len({tuple(cut(segmentations, SIDES[0], number)) for number in range(8)}) > 1


def test_more_dropout_cuts_finer() -> None:
    counts = [
        sum(len(cut(Segmentations(subwords(), dropout, seed=1), text, 1)) for text in SIDES)
        for dropout in (0.1, 0.5, 0.999)
    ]
    assert counts == sorted(counts) and counts[0] < counts[-1]
    # All but every merge left out: a token for each character of the text, its marks and its bytes.
    one_query = sum(
        1 if character in subwords().tokens else len(character.encode())
        for text in SIDES
        for chunk in subwords().chunks(text)
        for character in chunk
    )
    assert counts[-1] == pytest.approx(one_query, rel=0.05)


def test_seed_chunk_and_number_fix_it() -> None:
    """Whatever was asked for before."""
    one, two = Segmentations(subwords(), 0.3, seed=1), Segmentations(subwords(), 0.3, seed=1)
    forwards = [cut(one, text, number) for text in SIDES for number in range(8)]
    backwards = [cut(two, text, number) for text in reversed(SIDES) for number in reversed(range(8))]
    assert forwards == backwards[::-1]
    other = Segmentations(subwords(), 0.3, seed=2)
    assert [cut(other, text, number) for text in SIDES for number in range(8)] != forwards


def test_without_dropout_there_is_one() -> None:
    assert Segmentations(subwords(), 0.0, seed=1).count == 1
    assert Segmentations(words(), 0.3, seed=1).count == 1


def test_the_only_one_is_the_vocabularys_own() -> None:
    assert cut(Segmentations(subwords(), 0.0, seed=1), SIDES[0], 0) == subwords().encode(SIDES[0])


def test_words_are_never_cut() -> None:
    segmentations = Segmentations(words(), 0.3, seed=1)
    text = sentences()[0][0]
    assert [token for chunk in words().chunks(text) for token in segmentations(chunk, 0)] == words().encode(text)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(st.sampled_from(SIDES), st.integers(0, 7)), max_size=6), max_size=4))
def test_many_at_once_are_those_one_by_one(calls: list[list[tuple[str, int]]]) -> None:
    """However often, and in whatever order, they were asked for before."""
    segmentations = Segmentations(subwords(), 0.3, seed=1)
    for call in calls:
        chunks = [chunk for text, _ in call for chunk in subwords().chunks(text)]
        numbers = np.array([number for text, number in call for _ in subwords().chunks(text)], np.int64)
        tokens, counts = segmentations.tokens(segmentations.chunk_ids(chunks), numbers)
        right = [segmentations(chunk, number) for chunk, number in zip(chunks, numbers.tolist(), strict=True)]
        assert tokens.tolist() == [token for row in right for token in row]
        assert counts.tolist() == [len(row) for row in right]
