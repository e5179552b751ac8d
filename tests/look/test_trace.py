"""Traces by words: whose pieces they are, and what they look at."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.look.trace import AlteredOutput, AttentionWeights, Candidate, Evidence, MarkedTerm, Side, Step, Trace
from regard.look.trace_files import read, write
from regard.look.words import Span, words
from regard.text.boundaries import word_bounds
from regard.text.normal import tidy
from regard.text.vocabulary import Vocabulary
from tests.text.test_vocabulary import STRANGE, sentences, subwords, texts
from tests.text.test_vocabulary import words as word_vocabulary


def pieces(vocabulary: Vocabulary, text: str, end: bool = True) -> list[Span]:
    """As a translator makes them: the pieces, and the end token."""
    result = [Span(text[piece.start : piece.end], piece.start, piece.end) for piece in vocabulary.pieces(text)]
    return [*result, Span("", len(text), len(text))] if end else result


def traced(
    source: str, target: str, source_pieces: list[Span], target_pieces: list[Span], weights: np.ndarray
) -> Trace:
    """Of one attention with one head."""
    return Trace(
        Side(source, source_pieces), Side(target, target_pieces), [AttentionWeights("cross", weights[None, None])]
    )


def drawn(rows: int, columns: int) -> np.ndarray:
    weights = np.random.default_rng(0).random((rows, columns), dtype=np.float32)
    return weights / weights.sum(1, keepdims=True)


def check(vocabulary: Vocabulary, text: str) -> None:
    """The words of the text, each once, and every piece with the word it lies in."""
    result = pieces(vocabulary, text)
    spans, owners = words(text, result)
    expected = [text[begin:end] for begin, end in word_bounds(text, [piece.start for piece in result])]
    assert [span.text for span in spans] == [*expected, ""]
    assert all(text[span.start : span.end] == span.text for span in spans)
    assert len(owners) == len(result) and owners == sorted(owners)
    for piece, owner in zip(result, owners, strict=True):
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
    assert words(text, given_pieces) == ([Span("so", 0, 2), Span("(", 3, 4), Span("it", 4, 6)], [0, 1, 1, 2])


def test_a_word_in_which_no_piece_begins_belongs_to_the_one_before() -> None:
    assert words("so it.", [Span("so", 0, 2), Span("it.", 3, 6)]) == ([Span("so", 0, 2), Span("it.", 3, 6)], [0, 1])


def test_a_piece_that_begins_with_its_blank_belongs_to_the_word_behind_it() -> None:
    assert words("he read", [Span("he", 0, 2), Span(" read", 2, 7)]) == ([Span("he", 0, 2), Span("read", 3, 7)], [0, 1])


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
    with_end, without = (words(text, pieces(subwords(), text, end=end))[0] for end in (True, False))
    assert with_end == [*without, Span("", len(text), len(text))]


@pytest.mark.parametrize(("source", "target"), [sentences()[0], sentences()[1], ("Is it (so)?", "ते असे आहे का ?")])
def test_weights_between_words_are_sums_of_means(source: str, target: str) -> None:
    source_pieces, target_pieces = pieces(subwords(), source), pieces(subwords(), target)
    weights = drawn(len(target_pieces), len(source_pieces))
    rows, columns, table = traced(source, target, source_pieces, target_pieces, weights).by_words()
    assert rows == words(target, target_pieces)[0] and columns == words(source, source_pieces)[0]
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
    rows, columns, table = traced(source, target, *spans, weights).by_words()
    assert [columns, rows] == spans
    np.testing.assert_array_equal(table, weights)


@settings(max_examples=60, deadline=None)
@given(texts, texts, st.booleans())
def test_rows_add_up_whatever_the_texts(source: str, target: str, end: bool) -> None:
    source, target = tidy(source), tidy(target)
    source_pieces, target_pieces = pieces(subwords(), source), pieces(subwords(), target, end or not target)
    weights = drawn(len(target_pieces), len(source_pieces))
    rows, columns, table = traced(source, target, source_pieces, target_pieces, weights).by_words()
    assert table.shape == (len(rows), len(columns))
    np.testing.assert_allclose(table.sum(1), 1, rtol=1e-4)


# Files


def full_trace() -> Trace:
    source, target = "He drinks tea.", "तो चहा पितो."
    source_pieces, target_pieces = pieces(subwords(), source), pieces(subwords(), target)
    shape = (len(target_pieces), len(source_pieces))
    heads = np.stack([[drawn(*shape), drawn(*shape) ** 2], [drawn(*shape) ** 3, drawn(*shape)]])
    sides = Side(source, source_pieces, "en", [5] * shape[1]), Side(target, target_pieces, "mr")
    words_of = len(sides[1].words), len(sides[0].words)
    return Trace(
        *sides,
        [
            AttentionWeights("cross", heads),
            AttentionWeights("encoder", np.ones((1, 1, shape[1], shape[1]), np.float32)),
        ],
        [Step(0.5, [("ab", 0.25), ("", 0.125)]) for _ in target_pieces],
        [Candidate(target, -0.5, -2.0), Candidate("तो.", -0.75, -2.25)],
        {"languages": ["en", "mr"]},
        [Evidence("leave one out", drawn(*words_of), 0.75)],
        [AlteredOutput("uniform attention", "तो तो.", -9.5)],
        [MarkedTerm((10, 13), (3, 6))],
        [0.9, 0.25, 0.5, 1.0],
    )


def test_a_file_brings_back_what_was_written(tmp_path: Path) -> None:
    trace = full_trace()
    write([trace, trace], tmp_path / "trace.json")
    one, other = read(tmp_path / "trace.json")
    assert one.as_dict() == other.as_dict() == trace.as_dict()
    assert (one.source, one.steps, one.candidates) == (trace.source, trace.steps, trace.candidates)
    assert one.confidence == trace.confidence
    for mine, theirs in zip(one.attentions, trace.attentions, strict=True):
        assert mine.name == theirs.name
        np.testing.assert_allclose(mine.weights, theirs.weights, atol=0.5e-4 + 1e-7)


def test_a_single_trace_may_run_over_several_lines(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(full_trace().as_dict(), indent=2), encoding="utf-8")
    (result,) = read(tmp_path / "trace.json")
    assert result.as_dict() == full_trace().as_dict()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"regard_trace": 2}, "expected a trace of format 1, got 2"),
        ({"regard_trace": True}, "expected a trace of format 1, got True"),
        ({"confidence": [0.5]}, "confidence: expected 4, one a target word, got 1"),
        ({"confidence": [0.5, 0.5, 0.5, 1.5]}, "confidence[3]: expected a number from 0 to 1, got 1.5"),
        ({"source": None}, "trace 1: source: expected an object, got None"),
        ({"source": {"text": "x"}}, "source.pieces: expected it, and there is none"),
        ({"source": {"text": 3, "pieces": []}}, "source.text: expected text, got 3"),
        ({"source": {"text": "x", "pieces": 3}}, "source.pieces: expected a list, got 3"),
        ({"source": {"text": "x", "pieces": [3]}}, "source.pieces[0]: expected a list, got 3"),
        ({"source": {"text": "x", "pieces": [[0, 2]]}}, "source.pieces[0]: expected [start, end], places from 0 to 1"),
        ({"source": {"text": "xy", "pieces": [[1, 2], [0, 1]]}}, "expected pieces in the order of the text"),
        ({"source": {"text": "", "pieces": [], "language": 3}}, "source.language: expected text, got 3"),
        ({"source": {"text": "", "pieces": [], "tokens": 3}}, "source.tokens: expected a list, got 3"),
        (
            {"candidates": [{"text": "x", "score": "best", "log_probability": 0}]},
            "candidates[0].score: expected a number, got 'best'",
        ),
        ({"candidates": 5}, "candidates: expected a list, got 5"),
        ({"altered": [{"name": "x", "text": "y"}]}, "altered[0].log_probability: expected it"),
        ({"terms": [{"source": [0, 99], "target": [0, 1]}]}, "terms[0].source: expected [start, end], places from 0"),
        ({"attentions": 3}, "attentions: expected a list, got 3"),
        ({"attentions": [{"name": "cross", "weights": [[[[1.0]]]]}]}, "expected weights of"),
        ({"attentions": [{"name": "gaze", "weights": [[[[1.0]]]]}]}, "got 'gaze'"),
        ({"attentions": [{"name": ["cross"], "weights": [[[[1.0]]]]}]}, "attentions[0].name: expected text"),
        ({"attentions": [{"name": "cross", "weights": [1.0]}]}, "in 4 dims, got 1"),
        ({"attentions": [{"name": "cross", "weights": [[[[1.0], [1.0, 2.0]]]]}]}, "weights: expected numbers in 4"),
        ({"attentions": [{"name": "cross", "weights": [[[["a"]]]]}]}, "weights: expected numbers"),
        ({"attentions": [{"name": "cross", "weights": [[[[1e999]]]]}]}, "expected finite numbers"),
        ({"model": 3}, "model: expected an object, got 3"),
        ({"steps": [7]}, "steps[0]: expected an object, got 7"),
        ({"steps": [{"probability": 1.0, "others": [["a", 1]]}]}, "steps[0].others[0]: expected an object"),
        ({"steps": [{"probability": 1.0, "others": []}]}, "one a target piece, got 1"),
        ({"evidence": [{"name": "x", "values": [[1.0]], "agreement": 0}]}, "evidence 'x'"),
    ],
)
def test_damaged_files(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(full_trace().as_dict() | change), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(complaint)):
        read(tmp_path / "trace.json")


def test_what_other_programs_add_is_ignored(tmp_path: Path) -> None:
    report = full_trace().as_dict()
    for each in (report, report["source"], *report["steps"], *report["candidates"], *report["altered"]):
        each["more"] = 1
    (tmp_path / "trace.json").write_text(json.dumps(report), encoding="utf-8")
    (result,) = read(tmp_path / "trace.json")
    assert result.as_dict() == full_trace().as_dict()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"", "empty"), (b"{", "as JSON"), (b"[1]", "expected a trace"), (b"\xff\xfe", "trace.json: .* UTF-8")],
)
def test_files_that_hold_no_trace(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / "trace.json").write_bytes(content)
    with pytest.raises(ValueError, match=complaint):
        read(tmp_path / "trace.json")


def test_weights_are_the_mean_of_all_that_looks_at_the_source() -> None:
    trace = full_trace()
    np.testing.assert_allclose(trace.weights, trace.attentions[0].weights.mean((0, 1)), rtol=1e-6)


def large(source: int, target: int) -> dict[str, object]:
    sides = {name: {"text": "", "pieces": [[0, 0]] * count} for name, count in (("source", source), ("target", target))}
    return {"regard_trace": 1, "attentions": [], **sides}


def test_a_matrix_of_pieces_that_would_fill_the_memory_is_refused() -> None:
    """Each piece takes six bytes of a file, their matrix the square of that."""
    with pytest.raises(ValueError, match="expected at most 16,777,216 weights, got 100,000 × 100,000"):
        Trace.from_dict(large(100_000, 100_000))


def test_many_pieces_take_no_square_of_memory_or_time() -> None:
    trace = Trace.from_dict(large(50_000, 1))
    assert trace.by_words()[2].shape == (1, 1)
