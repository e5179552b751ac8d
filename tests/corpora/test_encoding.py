"""Encoding by words gives the tokens of the vocabulary, for any text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpora import encoding
from regard.corpora.encoding import WordEncoder, token_dtype
from regard.text.normal import tidy
from regard.text.vocabulary import Vocabulary, learn
from tests.corpora.stored import lines
from tests.training import toy

TEXTS = [tidy(line) for line in lines(300)] + [text for pair in toy.PAIRS for text in pair]
VOCABULARIES = {kind: learn(TEXTS, kind, 200) for kind in ("subwords", "words")}  # type: ignore[arg-type]


def check(encode: WordEncoder, vocabulary: Vocabulary, texts: list[str]) -> None:
    tokens, counts = encode(texts)
    expected = vocabulary.encode_all(texts)
    assert counts.tolist() == [len(row) for row in expected]
    assert np.frombuffer(tokens, token_dtype(len(vocabulary))).tolist() == [token for row in expected for token in row]


@pytest.mark.parametrize("kind", VOCABULARIES)
@given(texts=st.lists(st.text(max_size=40).map(tidy).filter(bool), max_size=5))
def test_any_texts(kind: str, texts: list[str]) -> None:
    check(WordEncoder(VOCABULARIES[kind]), VOCABULARIES[kind], texts)


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_texts_of_a_corpus(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = WordEncoder(VOCABULARIES[kind])
    check(encode, VOCABULARIES[kind], TEXTS)
    check(encode, VOCABULARIES[kind], TEXTS)  # from memory
    monkeypatch.setattr(encoding, "MAX_WORDS", 10)
    for first in range(0, len(TEXTS), 50):
        check(encode, VOCABULARIES[kind], TEXTS[first : first + 50])
        assert len(encode._tokens) + len(encode._older) < 200  # forgotten in between


def test_large_vocabularies_have_larger_ids() -> None:
    assert token_dtype(65_536) is np.uint16 and token_dtype(65_537) is np.uint32
