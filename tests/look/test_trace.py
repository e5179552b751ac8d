"""Traces by words: whose pieces they are, and what they look at."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.look.trace import Span, Trace, words
from regard.text.normal import tidy
from regard.text.vocabulary import Vocabulary
from tests.text.test_vocabulary import STRANGE, sentences, subwords, texts
from tests.text.test_vocabulary import words as word_vocabulary


def pieces(vocabulary: Vocabulary, text: str, end: bool = True) -> list[Span]:
    """As a translator makes them: the pieces, and the end token."""
    found = [Span(text[piece.start : piece.end], piece.start, piece.end) for piece in vocabulary.pieces(text)]
    return [*found, Span("", len(text), len(text))] if end else found


def drawn(rows: int, columns: int) -> np.ndarray:
    weights = np.random.default_rng(0).random((rows, columns), dtype=np.float32)
    return weights / weights.sum(1, keepdims=True)


def check(vocabulary: Vocabulary, text: str) -> None:
    """The words of the text, each once, and every piece with the word it lies in."""
    found = pieces(vocabulary, text)
    spans, owners = words(text, found)
    assert [span.text for span in spans] == [*text.split(), ""]
    assert all(text[span.start : span.end] == span.text for span in spans)
    assert len(owners) == len(found) and owners == sorted(owners)
    for piece, owner in zip(found, owners, strict=True):
        assert spans[owner].start <= piece.start <= piece.end <= spans[owner].end
    assert set(owners) == set(range(len(spans)))


@pytest.mark.parametrize("vocabulary", [subwords(), word_vocabulary()], ids=["subwords", "words"])
def test_words_of_sentences(vocabulary: Vocabulary) -> None:
    for pair in sentences():
        for text in pair:
            check(vocabulary, text)


@pytest.mark.parametrize(
    "text",
    [
        "unforgettable antidisestablishmentarianism",
        "विद्यार्थ्यांच्या पुस्तकालयातील",
        "क्\u200dष न\u200cम",
        "Is it so ?",
        'He said "no" to (them) .',
        '"Yes", she said.',
        "कॉफी ☕ प्या 😀 ना",
        "naïve æsthetics",
        "x",
        "",
    ],
)
def test_words_of_several_pieces(text: str) -> None:
    check(subwords(), text)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_words_of_anything(text: str) -> None:
    check(subwords(), tidy(text))


def test_strange_words_in_a_sentence() -> None:
    for text in STRANGE:
        check(subwords(), tidy(f"He is {text} a {text}boy."))


def test_a_piece_that_holds_a_blanks_mark_alone_belongs_to_the_word_that_begins() -> None:
    text = "so (it"
    given_pieces = [Span("so", 0, 2), Span("", 3, 3), Span("(", 3, 4), Span("it", 4, 6)]
    assert words(text, given_pieces) == ([Span("so", 0, 2), Span("(it", 3, 6)], [0, 1, 1, 1])


def test_pieces_of_one_character_belong_to_one_word() -> None:
    """A rare character at the beginning of a word, as its bytes."""
    given_pieces = [Span("a", 0, 1), Span("é", 2, 3), Span("é", 2, 3), Span("t", 3, 4)]
    assert words("a ét", given_pieces) == ([Span("a", 0, 1), Span("ét", 2, 4)], [0, 1, 1, 1])


def test_the_end_is_a_word_of_its_own() -> None:
    assert words("ab", [Span("a", 0, 1), Span("b", 1, 2), Span("", 2, 2)]) == (
        [Span("ab", 0, 2), Span("", 2, 2)],
        [0, 0, 1],
    )
    assert words("", [Span("", 0, 0)]) == ([Span("", 0, 0)], [0])
    assert words("", []) == ([], [])


def test_a_text_that_did_not_end() -> None:
    text = sentences()[0][0]
    spans, _ = words(text, pieces(subwords(), text, end=False))
    assert [span.text for span in spans] == text.split()


@pytest.mark.parametrize(("source", "target"), [sentences()[0], sentences()[1], ("Is it (so)?", "ते असे आहे का ?")])
def test_weights_between_words_are_sums_of_means(source: str, target: str) -> None:
    source_pieces, target_pieces = pieces(subwords(), source), pieces(subwords(), target)
    weights = drawn(len(target_pieces), len(source_pieces))
    rows, columns, table = Trace(source, target, source_pieces, target_pieces, weights).by_words()
    assert [span.text for span in rows] == [*target.split(), ""]
    assert [span.text for span in columns] == [*source.split(), ""]
    assert table.dtype == np.float32 and table.shape == (len(rows), len(columns))
    np.testing.assert_allclose(table.sum(1), 1, rtol=1e-5)

    def inside(piece: Span, word: Span) -> bool:
        return (
            (piece.start, piece.end) == (word.start, word.end)
            if not word.text
            else (word.start <= piece.start < word.end)
        )

    for i, row in enumerate(rows):
        own = [number for number, piece in enumerate(target_pieces) if inside(piece, row)]
        for j, column in enumerate(columns):
            others = [number for number, piece in enumerate(source_pieces) if inside(piece, column)]
            expected = np.mean([sum(weights[one, other] for other in others) for one in own])
            np.testing.assert_allclose(table[i, j], expected, rtol=1e-5)


def test_by_words_of_pieces_that_are_words_is_the_same() -> None:
    source, target = "a b c", "d e"
    spans = [[Span(text[i], i, i + 1) for i in range(0, len(text), 2)] for text in (source, target)]
    weights = drawn(2, 3)
    rows, columns, table = Trace(source, target, *spans, weights).by_words()
    assert [columns, rows] == spans
    np.testing.assert_array_equal(table, weights)


@settings(max_examples=60, deadline=None)
@given(texts, texts, st.booleans())
def test_rows_add_up_whatever_the_texts(source: str, target: str, end: bool) -> None:
    source, target = tidy(source), tidy(target)
    source_pieces, target_pieces = pieces(subwords(), source), pieces(subwords(), target, end or not target)
    weights = drawn(len(target_pieces), len(source_pieces))
    rows, columns, table = Trace(source, target, source_pieces, target_pieces, weights).by_words()
    assert table.shape == (len(rows), len(columns))
    np.testing.assert_allclose(table.sum(1), 1, rtol=1e-4)
