"""Sources with terms that are shown, and their attention."""

from __future__ import annotations

import numpy as np
import pytest

from regard.look.trace import Side
from regard.look.words import Span
from regard.search.force_decode import ForcedDecoding
from regard.tasks.translation.read_source import MAX_SHOWN_TOKENS, ReadSource
from regard.text.glossary import Glossary
from regard.text.shown_terms import annotation
from regard.text.vocabulary import END, TERM_MARKS, Vocabulary, learn_subwords

TEXT = "Rahul has two keys."
VOCABULARY = learn_subwords([TEXT, "दोन चाव्या"] * 5, 40, further=TERM_MARKS)


def side(text: str = TEXT, vocabulary: Vocabulary = VOCABULARY) -> Side:
    pieces = vocabulary.pieces(text)
    spans = [Span(text[piece.start : piece.end], piece.start, piece.end) for piece in pieces]
    return Side(text, [*spans, Span("", len(text), len(text))], None, [*(piece.token for piece in pieces), END])


def read(*terms: tuple[str, str | list[str]], text: str = TEXT) -> ReadSource:
    return ReadSource.of(side(text), Glossary.of(terms).terms(text), VOCABULARY)


def test_terms_are_shown_as_in_training() -> None:
    source = read(("keys", ["चाव्या", "दोन"]), ("two", "="))
    text = (
        f"Rahul has two{TERM_MARKS[0]} two{TERM_MARKS[1]} keys{TERM_MARKS[0]} चाव्या{TERM_MARKS[0]} दोन{TERM_MARKS[1]}."
    )
    assert source.tokens == [*VOCABULARY.encode(text), END]
    assert source.side.text == TEXT and len(source.owners) == len(source.tokens)


def test_a_term_at_the_end_comes_before_the_end_token() -> None:
    source = read(("keys", "चाव्या"), text="two keys")
    assert source.tokens[-2:] == [VOCABULARY.tokens[TERM_MARKS[1]], END]


def test_the_attention_to_a_term_belongs_to_its_word() -> None:
    source = read(("two", "दोन"))
    weights = np.random.default_rng(1).dirichlet(np.ones(len(source.tokens)), (1, 2, 3)).astype(np.float32)
    decoding = ForcedDecoding(
        weights, *[np.zeros(3)] * 4, self_attention={"encoder": weights[..., :1, :].repeat(len(source.tokens), 2)}
    )  # type: ignore[arg-type]
    result = source.decoding(decoding)
    assert result.weights.shape == (1, 2, 3, len(source.side.pieces)) and result.weights.sum(-1) == pytest.approx(1)
    term = source.terms[0]
    own = [n for n, piece in enumerate(source.side.pieces) if term.start <= piece.start < term.end]
    shown = weights[..., list(source.positions(term))].sum(-1)
    assert result.weights[..., own].sum(-1) == pytest.approx(shown) and len(source.positions(term)) > len(own)
    assert result.self_attention["encoder"].shape[2:] == (len(source.side.pieces),) * 2


def test_without_terms_or_marks_nothing_changes() -> None:
    for source in (ReadSource.of(side()), ReadSource.of(side(), (), VOCABULARY), read(("absent", "x"))):
        assert source.tokens == source.side.tokens
    plain = learn_subwords([TEXT] * 5, 40)
    source = ReadSource.of(side(TEXT, plain), Glossary.of([("two", "दोन")]).terms(TEXT), plain)
    assert source.tokens == source.side.tokens and len(source.terms) == 1
    weights = np.ones((1, 1, 2, len(source.tokens)), np.float32)
    assert source._merged(weights) is weights


@pytest.mark.parametrize("text", ["私は男の子です。", "男の子", "ذهب الولد إلى البيت.", "a 男の子-b"])
def test_terms_of_other_scripts_are_shown_beside_them(text: str) -> None:
    """Also where a word has no end of its own, and where characters are spelled in bytes."""
    word = "الولد" if "الولد" in text else "男の子"
    for vocabulary in (VOCABULARY, learn_subwords([text] * 5, 60, further=TERM_MARKS)):
        terms = Glossary.of([(word, "boy")]).terms(text)
        source = ReadSource.of(side(text, vocabulary), terms, vocabulary)
        shown = len(source.tokens) - len(source.side.tokens)
        assert shown == len(vocabulary.encode(annotation(["boy"]))) - 1  # without the mark of a word's beginning
        assert list(source.owners) == sorted(source.owners) and len(source.positions(terms[0])) > shown
        place = source.tokens.index(vocabulary.tokens[TERM_MARKS[0]])
        assert source.side.pieces[source.owners[place]].end >= text.index(word) + len(word)


def test_very_many_terms_are_not_shown() -> None:
    text = " ".join(f"word{number}" for number in range(60))
    source = read(*((word, "x" * 50) for word in text.split()), text=text)
    assert len(source.side.tokens) < len(source.tokens) <= len(source.side.tokens) + MAX_SHOWN_TOKENS
    assert len(source.terms) == 60
