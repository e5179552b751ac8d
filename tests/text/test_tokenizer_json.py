"""The JSON of a vocabulary from a stranger: only what `to_json` writes is accepted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from regard.text.vocabulary import Vocabulary, learn_subwords, learn_words
from tests.training import toy

TEXTS = [text for pair in toy.PAIRS for text in pair]
SUBWORDS, WORDS = learn_subwords(TEXTS, 200), learn_words(TEXTS)
EXPLODES = r"(x+x+)+y"
ADDED = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
PADDING = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}


@pytest.mark.parametrize("vocabulary", [SUBWORDS, WORDS], ids=["subwords", "words"])
def test_what_is_written_is_read(vocabulary: Vocabulary) -> None:
    read = Vocabulary.from_json(vocabulary.to_json())
    assert read.to_json() == vocabulary.to_json() and read.words == vocabulary.words
    texts = [*TEXTS, "unseen 漢字 😀 don’t!", ""]
    assert read.encode_all(texts) == vocabulary.encode_all(texts)
    assert [read.decode(row) for row in read.encode_all(texts)] == [
        vocabulary.decode(row) for row in vocabulary.encode_all(texts)
    ]


HOSTILE: list[dict[str, Any]] = [
    {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": EXPLODES}, "behavior": "Isolated", "invert": False}},
    {"normalizer": {"type": "Replace", "pattern": {"Regex": EXPLODES}, "content": "x" * 100}},
    {"decoder": {"type": "Replace", "pattern": {"Regex": EXPLODES}, "content": ""}},
    {"post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}},
    {"padding": {"strategy": {"Fixed": 10**9}, **PADDING}},
    {"truncation": {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}},
    {"added_tokens": [{"id": 10**9, "content": "a", **ADDED}]},
    {"pre_tokenizer": None},
    {"version": "2.0"},
    {"more": 1},
    {"model": None},
    {"model": []},
    {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["a", 0.0]]}},
]


@pytest.mark.parametrize("change", HOSTILE)
@pytest.mark.parametrize("vocabulary", [SUBWORDS, WORDS], ids=["subwords", "words"])
def test_another_tokenizer_is_refused(vocabulary: Vocabulary, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Vocabulary.from_json(json.dumps(json.loads(vocabulary.to_json()) | change))


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "3", "[" * 100_000, '{"model": 3}', '{"model": {}}'])
def test_what_is_no_tokenizer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Vocabulary.from_json(text)


def changed(vocabulary: Vocabulary, **model: Any) -> str:
    tree = json.loads(vocabulary.to_json())
    return json.dumps(tree | {"model": tree["model"] | model})


def ids(vocabulary: Vocabulary, **changes: Any) -> dict[str, Any]:
    return {token: number for token, number in (vocabulary.tokens | changes).items() if number is not None}


@pytest.mark.parametrize(
    "changes",
    [
        {"<pad>": 1, "<s>": 0},
        {"</s>": None},
        {"new": 10**9},
        {"new": 5},
        {"new": -1},
        {"new": "3"},
        {"new": 1.5},
        {"new": True},
    ],
)
@pytest.mark.parametrize("vocabulary", [SUBWORDS, WORDS], ids=["subwords", "words"])
def test_ids_that_a_model_has_no_embedding_for_are_refused(vocabulary: Vocabulary, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="vocab: expected"):
        Vocabulary.from_json(changed(vocabulary, vocab=ids(vocabulary, **changes)))


def test_a_token_with_a_line_end_would_break_the_lines_of_results() -> None:
    with pytest.raises(ValueError, match="without white space"):
        Vocabulary.from_json(changed(WORDS, vocab=ids(WORDS, **{"a\nb": len(WORDS)})))


@pytest.mark.parametrize("merges", [3, [["a"]], [["a", 3]], ["a b"], [["<s>", "</s>"]], [["no", "token"]]])
def test_merges_of_no_tokens_are_refused(merges: Any) -> None:
    with pytest.raises(ValueError, match="merges: expected"):
        Vocabulary.from_json(changed(SUBWORDS, merges=merges))


def test_dropout_of_merges_is_refused() -> None:
    """Encoding would no longer be the same every time."""
    with pytest.raises(ValueError, match="as regard makes it"):
        Vocabulary.from_json(changed(SUBWORDS, dropout=0.5))
