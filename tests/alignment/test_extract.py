"""Weights between tokens as given, and links from weights."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment.extract import combine, links_of, token_weights
from regard.alignment.head_selection import HeadSelection
from regard.alignment.links import parse_links
from regard.alignment.tokens import tokens
from regard.look.trace import Side, Trace
from regard.look.words import Span
from regard.text.normal import tidy
from tests.alignment.hand_made import side, trace
from tests.text.test_vocabulary import sentences, subwords

SOURCE = side("unseen boys run", ["un", "seen", "boys", "run"])
TARGET = side("des garçons cou rent", ["des", "gar", "çons", "cou", "rent"])
WEIGHTS = [
    [0.1, 0.2, 0.3, 0.0, 0.4],
    [0.0, 0.1, 0.7, 0.2, 0.0],
    [0.1, 0.0, 0.9, 0.0, 0.0],
    [0.0, 0.0, 0.1, 0.8, 0.1],
    [0.2, 0.2, 0.0, 0.6, 0.0],
    [0.0, 0.0, 0.5, 0.0, 0.5],
]


def test_summed_over_source_pieces_averaged_over_target_pieces() -> None:
    result = token_weights(trace(SOURCE, TARGET, WEIGHTS), "unseen boys run", "des garçons cou rent")
    expected = [[0.3, 0.3, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.8], [0.4, 0.0, 0.6]]
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_one_step_later_is_the_row_of_the_next_piece() -> None:
    result = token_weights(
        trace(SOURCE, TARGET, WEIGHTS), "unseen boys run", "des garçons cou rent", HeadSelection(next_step=True)
    )
    expected = [[0.1, 0.7, 0.2], [0.05, 0.5, 0.4], [0.4, 0.0, 0.6], [0.0, 0.5, 0.0]]
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_one_step_later_the_last_piece_of_an_unfinished_text_keeps_its_own() -> None:
    unfinished = Side(TARGET.text, TARGET.pieces[:-1])
    result = token_weights(
        trace(SOURCE, unfinished, WEIGHTS[:-1]), "unseen boys run", TARGET.text, HeadSelection(next_step=True)
    )
    np.testing.assert_allclose(result[-1], [0.4, 0.0, 0.6], atol=1e-6)


def test_tokens_are_as_given_however_the_text_was_tidied() -> None:
    """Runs of blanks separate; a no-break space does not; a token of nothing but one counts, and has no weight."""
    lines = " unseen\u00a0boys   run\t\u00a0", unicodedata.normalize("NFD", "des garçons \u00a0 cou\u00a0rent")
    result = token_weights(trace(SOURCE, TARGET, WEIGHTS), *lines)
    expected = [[0.6, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 0.0, 0.0], [0.25, 0.7, 0.0]]
    np.testing.assert_allclose(result, expected, atol=1e-6)


@pytest.mark.parametrize(("source", "target"), [("unseen boy run", TARGET.text), (SOURCE.text, "des garçons")])
def test_a_line_of_another_text_is_refused(source: str, target: str) -> None:
    with pytest.raises(ValueError, match="expected a trace of") as raised:
        token_weights(trace(SOURCE, TARGET, WEIGHTS), source, target)
    assert repr(source if source != SOURCE.text else target) in str(raised.value)


def real(text: str) -> Side:
    """With the pieces of a subword vocabulary, as translators have them."""
    pieces = [Span(text[each.start : each.end], each.start, each.end) for each in subwords().pieces(text)]
    return Side(text, [*pieces, Span("", len(text), len(text))])


def drawn(source: str, target: str) -> Trace:
    sides = real(tidy(source)), real(tidy(target))
    weights = np.random.default_rng(0).random((len(sides[1].pieces), len(sides[0].pieces)))
    return trace(*sides, weights / weights.sum(1, keepdims=True))


def test_as_by_words_where_words_are_what_blanks_separate() -> None:
    plain = [[text.replace(".", "").replace("?", "").replace(",", "") for text in pair] for pair in sentences()]
    for pair in [pair for pair in plain if all(text.replace(" ", "").isalpha() for text in pair)][:20] or plain[:5]:
        given_trace = drawn(*pair)
        rows, _, expected = given_trace.by_words()
        assert [row.text for row in rows[:-1]] == tokens(tidy(pair[1]))
        np.testing.assert_allclose(token_weights(given_trace, *pair), expected[:-1, :-1], atol=1e-6)


lines = st.lists(
    st.text(st.sampled_from("abée\u0301\u00a0\u2003.,क्ष\u200d漢😀"), min_size=1), min_size=1, max_size=6
).map("  ".join)


@settings(max_examples=200, deadline=None)
@given(lines, lines)
def test_every_weight_goes_to_a_token_or_the_end(source: str, target: str) -> None:
    given_trace = drawn(source, target)
    result = token_weights(given_trace, source, target)
    assert result.shape == (len(tokens(target)), len(tokens(source)))
    full = [bool(tidy(token)) for token in tokens(target)]
    ends = token_weights(given_trace, source, target)  # what is missing to 1 lies between 0 and 1
    assert all((0 <= row.sum() <= 1 + 1e-5) if there else not row.any() for row, there in zip(ends, full, strict=True))
    counts = [len(real(tidy(token)).pieces) - 1 for token in tokens(target)]
    total = float((result.sum(1) * counts).sum())
    assert total == pytest.approx(float(given_trace.weights[:-1, :-1].sum()), abs=1e-4)


# links


ROW_COUNT = np.array([[0.6, 0.3, 0.0], [0.5, 0.4, 0.1], [0.1, 0.2, 0.2], [0.0, 0.0, 0.0]], np.float32)
"""the last two look at the end token most: 0.5 and 1"""


@pytest.mark.parametrize(
    ("method", "min_weight", "end", "expected"),
    [
        ("argmax", None, True, "0-0 0-1"),
        ("argmax", None, False, "0-0 0-1 1-2"),
        ("argmax", 0.6, True, "0-0"),
        ("threshold", None, True, "0-0 1-0 0-1 1-1"),
        ("threshold", 0.1, True, "0-0 1-0 0-1 1-1 2-1 0-2 1-2 2-2"),
        ("threshold", 0.0, True, "0-0 1-0 0-1 1-1 2-1 0-2 1-2 2-2"),
        ("mutual", None, True, "0-0"),
        ("mutual", 0.61, True, ""),
    ],
)
def test_links_from_weights(method: str, min_weight: float | None, end: bool, expected: str) -> None:
    assert links_of(ROW_COUNT, method, min_weight, end) == parse_links(expected)  # type: ignore[arg-type]


def test_mutual_is_each_others_largest() -> None:
    weights = np.array([[0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]], np.float32)
    assert links_of(weights, "mutual") == parse_links("1-0 0-1 2-2")


def test_no_tokens_no_links() -> None:
    for shape in ((0, 3), (3, 0), (0, 0)):
        for method in ("argmax", "threshold", "mutual"):
            assert links_of(np.zeros(shape, np.float32), method) == frozenset()  # type: ignore[arg-type]


def test_another_method_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of argmax, threshold, mutual, got 'best'"):
        links_of(ROW_COUNT, "best")  # type: ignore[arg-type]


def test_both_directions_combined() -> None:
    forward = np.array([[0.9, 0.1], [0.4, 0.6], [0.0, 1.0]], np.float32)
    backward = np.array([[0.4, 0.1, 0.5], [0.0, 0.6, 0.4]], np.float32)
    expected = [[0.6, 0.0], [0.2, 0.6], [0.0, 0.4**0.5]]
    np.testing.assert_allclose(combine(forward, backward), expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"expected weights of shape \(2, 3\), got \(3, 2\)"):
        combine(forward, backward.T)
