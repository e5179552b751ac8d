"""Tables: whose weights they hold, under which labels."""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.look.table import BLANK, END, Table, agreement, strongest, table
from regard.look.trace import AttentionWeights, Evidence, Side, Trace, by_words
from regard.look.words import Span
from regard.text.boundaries import graphemes


def side(*pieces: str, end: bool = True) -> Side:
    """A text of these pieces, but for the blanks before them, and the end token."""
    text = "".join(pieces)
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    inside = [piece.lstrip(" ") or piece for piece in pieces]
    spans = [Span(piece, last - len(piece), last) for piece, last in zip(inside, ends, strict=True)]
    return Side(text, [*spans, Span("", len(text), len(text))] if end else spans)


def drawn(*shape: int) -> np.ndarray:
    weights = np.random.default_rng(0).random(shape, dtype=np.float32)
    return weights / weights.sum(-1, keepdims=True)


SOURCE = side("The", " stud", "ents", " read", ".")
TARGET = side("वि", "द्यार्थी", " वाच", "तात", ".")


def trace(source: Side = SOURCE, target: Side = TARGET, layers: int = 2, heads: int = 3) -> Trace:
    rows, columns = len(target.pieces), len(source.pieces)
    attentions = [
        AttentionWeights("encoder", drawn(layers, heads, columns, columns)),
        AttentionWeights("cross", drawn(layers, heads, rows, columns)),
    ]
    shape = (len(target.words), len(source.words))
    evidence = [
        Evidence("leave one out", np.linspace(-0.1, 3, shape[0] * shape[1], dtype=np.float32).reshape(shape), 0.714),
        Evidence("gradient", np.zeros(shape, np.float32), -0.25),
    ]
    return Trace(source, target, attentions, evidence=evidence)


def test_by_words() -> None:
    shown = table(trace())
    assert shown.rows == ("विद्यार्थी", "वाचतात", ".", END)
    assert shown.columns == ("The", "students", "read", ".", END)
    np.testing.assert_array_equal(shown.weights, trace().by_words()[2])
    np.testing.assert_allclose(shown.weights.sum(1), 1, atol=1e-5)
    assert shown.title == ("cross attention", "mean of 2 layers", "mean of 3 heads")


@pytest.mark.parametrize("layer", [None, 0, 1])
@pytest.mark.parametrize("head", [None, 0, 2])
@pytest.mark.parametrize("name", ["cross", "encoder"])
def test_the_layer_and_the_head(layer: int | None, head: int | None, name: str) -> None:
    given = trace()
    weights = given.attentions[["encoder", "cross"].index(name)].weights
    weights = weights.mean(0) if layer is None else weights[layer]
    weights = weights.mean(0) if head is None else weights[head]
    shown = table(given, attention=name, layer=layer, head=head)
    np.testing.assert_allclose(shown.weights, by_words(weights, *given.sides(name)), atol=1e-6)
    assert shown.title[0] == f"{name} attention"
    assert (f"layer {layer}" in shown.title) == (layer is not None)
    assert (f"head {head}" in shown.title) == (head is not None)


def test_where_there_is_one_head_nothing_is_said_of_it() -> None:
    assert table(trace(layers=1, heads=1)).title == ("cross attention",)


def test_who_looks_at_whom() -> None:
    shown = table(trace(), attention="encoder")
    assert shown.rows == shown.columns == ("The", "students", "read", ".", END)


def test_directions() -> None:
    arabic = side("قرأ", " الطالب", ".")
    assert (table(trace()).row_direction, table(trace()).column_direction) == ("ltr", "ltr")
    shown = table(trace(target=arabic))
    assert (shown.row_direction, shown.column_direction) == ("rtl", "ltr")
    shown = table(trace(source=arabic))
    assert (shown.row_direction, shown.column_direction) == ("ltr", "rtl")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"attention": "decoder"}, "attention: expected one of 'encoder', 'cross', got 'decoder'"),
        ({"layer": 2}, "layer: expected 0 to 1, got 2"),
        ({"head": -1}, "head: expected 0 to 2, got -1"),
        ({"evidence": "gradients"}, "evidence: expected one of 'leave one out', 'gradient', got 'gradients'"),
        ({"evidence": "gradient", "head": 0}, "no single layer or head; got attention='cross', layer=None, head=0"),
        ({"evidence": "gradient", "pieces": True}, "is by words"),
        ({"evidence": "gradient", "attention": "encoder"}, "the target looks at in the source"),
    ],
)
def test_mistakes(wanted: dict, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        table(trace(), **wanted)


def test_what_a_trace_has_not() -> None:
    with pytest.raises(ValueError, match="layer: expected only 0, got 1"):
        table(trace(layers=1), layer=1)
    with pytest.raises(ValueError, match="attention: expected none, for this trace has none, got 'cross'"):
        table(Trace(SOURCE, TARGET, []))


# Evidence


def test_agreement_stands_below_what_it_was_measured_with() -> None:
    message = ("agreement with leave one out: 0.71", "agreement with gradient: -0.25")
    assert table(trace()).footnotes == table(trace(), pieces=True).footnotes == message
    assert table(trace(layers=1, heads=1), layer=0, head=0).footnotes == message
    assert table(trace(), head=0).footnotes == table(trace(), layer=0).footnotes == ()
    assert table(trace(), attention="encoder").footnotes == ()
    assert agreement(trace().evidence[0]) == message[0]


def test_evidence_in_place_of_the_weights() -> None:
    shown = table(trace(), evidence="leave one out")
    np.testing.assert_array_equal(shown.weights, trace().evidence[0].values)
    assert shown.title == ("leave one out",) and shown.footnotes == ("agreement with the attention: 0.71",)
    assert shown.top == pytest.approx(3) and shown.fractions.max() == 1 and shown.fractions.min() == 0
    assert not table(trace(), evidence="gradient").fractions.any()


# Pieces


def test_by_pieces() -> None:
    given = trace(target=side("विद्या", "र्थी", " वाच", "तात", "."))
    shown = table(given, pieces=True, layer=0, head=1)
    assert shown.rows == ("विद्या", "र्थी", "वाच", "तात", ".", END)
    assert shown.columns == ("The", "stud", "ents", "read", ".", END)
    np.testing.assert_array_equal(shown.weights, given.attentions[1].weights[0, 1])


def test_pieces_that_cut_a_character_are_put_together() -> None:
    """Summed where they are looked at, averaged where they look."""
    given = trace(side("न", "म", "स्", "ते"), side("क", "्", "षमा", " च"), layers=1, heads=1)
    shown = table(given, pieces=True)
    assert shown.rows == ("क्षमा", "च", END)
    assert shown.columns == ("न", "म", "स्ते", END)
    weights = given.attentions[1].weights[0, 0]
    assert shown.weights[0, 2] == pytest.approx(weights[:3, 2:4].sum(1).mean())
    assert shown.weights[2, 0] == pytest.approx(weights[4, 0])


def test_bytes_of_a_character() -> None:
    """Pieces without text belong to the character that they stand at; the end token stands alone."""
    text = "a😀"
    for places in ([(0, 1), (1, 1), (1, 1), (1, 2)], [(0, 1), (1, 2), (2, 2), (2, 2)], [(0, 1), (1, 2), (1, 2)]):
        given = Side(text, [*(Span(text[a:b], a, b) for a, b in places), Span("", 2, 2)])
        assert table(trace(source=given), pieces=True).columns == ("a", "😀", END)


def test_a_piece_of_blanks_can_be_seen() -> None:
    assert table(trace(source=side("a", " ", "b")), pieces=True).columns == ("a", BLANK, "b", END)


@given(st.text("abनमकष्ाि\u200dé\u0301😀👩🇮🇳", max_size=12), st.data())
def test_no_character_is_ever_cut(text: str, data: st.DataObject) -> None:
    cuts = data.draw(st.sets(st.integers(1, max(1, len(text) - 1)))) if text else set()
    bounds = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(bounds)]
    shown = table(trace(source=side(*pieces)), pieces=True)
    assert shown.columns[-1] == END
    assert [one for label in shown.columns[:-1] for one in graphemes(label)] == graphemes(text)
    np.testing.assert_allclose(shown.weights.sum(1), 1, atol=1e-5)


def test_next_to_nothing() -> None:
    for pieces in (False, True):
        shown = table(trace(side(), side()), pieces=pieces)
        assert (shown.rows, shown.columns) == ((END,), (END,)) and shown.weights.tolist() == [[1]]


# Tables of their own


def made(weights: Sequence[Sequence[float]]) -> Table:
    result = np.array(weights, np.float32)
    return Table(list(map(str, range(len(result)))), list(map(str, range(result.shape[1]))), result)


def test_strongest() -> None:
    assert strongest(made([[0.1, 0.5, 0.25], [1, 0, 1]]), 2) == [(0, 1, 0.5), (0, 2, 0.25), (1, 0, 1), (1, 2, 1)]


@given(st.lists(st.lists(st.sampled_from([0, 0.25, 0.5, 1]), min_size=4, max_size=4), max_size=4), st.integers(1, 6))
def test_strongest_of_each_row(weights: list[list[float]], count: int) -> None:
    result = strongest(made(np.array(weights).reshape(-1, 4)), count)
    for row, values in enumerate(weights):
        by_hand = sorted(range(4), key=lambda column: (-values[column], column))[:count]
        assert [(column, weight) for number, column, weight in result if number == row] == [
            (column, values[column]) for column in by_hand
        ]


def test_mistakes_in_tables() -> None:
    with pytest.raises(ValueError, match="count: expected at least 1, got 0"):
        strongest(made([[1]]), 0)
    with pytest.raises(ValueError, match=r"weights: expected \(1, 2\), as there are labels, got \(2, 1\)"):
        Table(["a"], ["b", "c"], np.ones((2, 1), np.float32))
    with pytest.raises(ValueError, match=r"top: expected a number above 0, got 0\.0"):
        Table(["a"], ["b"], np.ones((1, 1), np.float32), top=0.0)
