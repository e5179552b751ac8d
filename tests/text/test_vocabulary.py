"""Text comes back from its tokens, whatever it holds; `tokenizers`' own decoder is the oracle."""

from collections import Counter
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from regard import samples
from regard.text.normal import tidy
from regard.text.vocabulary import BYTES, END, SPECIAL, UNKNOWN, WORD_BEGINS, Vocabulary, learn_subwords, learn_words

STRANGE = [
    *("<s>", "</s>", "<pad>", "<unk>", "<0x41>", "<0xE0>", "<0x1F>", "▁", "▁the", "Ġ", "##ing", "@@", "\\u0020"),
    *("क्\u200dष", "र\u200d्य", "न\u200cम", "\u200d", "\u200c", "\u200b", "\ufeff", "\u00ad", "श्री", "कि", "ऱ्या"),
    *("👩\u200d👩\u200d👧", "🇮🇳", "👍🏽", "☕️", "e\u0301", "\u0301", "Å", "ﬁ", "ẞ", "İ", "J\u030c", "가", "한국어"),
    *("\0", "\x01", "\x1b[31m", "\x7f", "\x1c", "\x1f", "\u0085", "\u2028", "\u00a0", "\u3000", "\t", "\n", " ", "  "),
    *("don't", "it’s", '"', "'", "(", ")", "...", "।", "a.b", "#1", "\U0010ffff", "\ue000", "\ufffd", "\u0378"),
]
texts = st.one_of(st.text(), st.lists(st.sampled_from(STRANGE) | st.text(max_size=4)).map("".join))


@cache
def sentences() -> list[tuple[str, str]]:
    """A few dozen of the sample's pairs."""
    return samples.read(samples.folder() / samples.TRAIN)[:60]


@cache
def subwords() -> Vocabulary:
    return learn_subwords([text for pair in sentences() for text in pair], 300)


@cache
def words() -> Vocabulary:
    return learn_words([english for english, _ in sentences()])


def names(vocabulary: Vocabulary, text: str) -> list[str]:
    return [vocabulary.name(token) for token in vocabulary.encode(text)]


@settings(max_examples=400, deadline=None)
@given(texts)
def test_any_text_comes_back(text: str) -> None:
    tokens = subwords().encode(text)
    assert subwords().decode(tokens) == tidy(text)
    assert all(END < token < len(subwords()) for token in tokens)


def test_strange_text_comes_back() -> None:
    for text in [*STRANGE, *("a" + strange + "b" for strange in STRANGE), " ".join(STRANGE), "".join(STRANGE)]:
        assert subwords().decode(subwords().encode(text)) == tidy(text)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_decoding_is_that_of_tokenizers(text: str) -> None:
    theirs = Tokenizer.from_str(subwords().to_json())
    tokens = subwords().encode(text)
    assert theirs.decode(tokens, skip_special_tokens=False) == subwords().decode(tokens)
    assert theirs.encode(tidy(text)).ids == tokens


@settings(max_examples=60, deadline=None)
@given(st.lists(texts, min_size=1, max_size=3), st.integers(1, 60), st.integers(1, 4), texts)
def test_a_vocabulary_from_anything_takes_anything(learned: list[str], size: int, rare: int, text: str) -> None:
    vocabulary = learn_subwords(learned, size, rare)
    for given_text in (*learned, text):
        tokens = vocabulary.encode(given_text)
        assert vocabulary.decode(tokens) == tidy(given_text)
        assert all(token > END for token in tokens)


@settings(max_examples=60, deadline=None)
@given(st.lists(texts, min_size=1, max_size=3), st.none() | st.integers(1, 9), texts)
def test_words_from_anything_take_anything(learned: list[str], size: int | None, text: str) -> None:
    vocabulary = learn_words(learned, size)
    for given_text in (*learned, text):
        tokens = vocabulary.encode(given_text)
        assert all(END < token < len(vocabulary) for token in tokens)
        assert UNKNOWN not in vocabulary.decode(tokens) or size is not None or given_text is text


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 10**6)))
def test_any_tokens_are_some_text(tokens: list[int]) -> None:
    """A model may say bytes that are no UTF-8."""
    assert isinstance(subwords().decode([token % len(subwords()) for token in tokens]), str)


def test_padding_start_and_end_are_left_out() -> None:
    tokens = subwords().encode("The bus is late.")
    assert subwords().decode([1, *tokens, 2, 0, 0]) == "The bus is late."


@settings(max_examples=200, deadline=None)
@given(texts, st.sampled_from(["subwords", "words"]))
def test_pieces_lie_in_the_text_in_order_and_cover_it(text: str, kind: str) -> None:
    vocabulary = subwords() if kind == "subwords" else words()
    text = tidy(text)
    pieces = vocabulary.pieces(text)
    assert [piece.token for piece in pieces] == vocabulary.encode(text)
    assert all(0 <= piece.start <= piece.end <= len(text) for piece in pieces)
    assert all(one.start <= two.start and one.end <= two.end for one, two in pairwise(pieces))
    covered = {place for piece in pieces for place in range(piece.start, piece.end)}
    assert covered == {place for place, character in enumerate(text) if character != " "}


def test_the_blank_before_a_word_belongs_to_no_piece() -> None:
    vocabulary = learn_subwords(["the boy sees the boy"] * 5, 60)
    result = [(vocabulary.name(token), start, end) for token, start, end in vocabulary.pieces("the boy")]
    assert result == [(WORD_BEGINS + "the", 0, 3), (WORD_BEGINS + "boy", 4, 7)]


@settings(max_examples=50, deadline=None)
@given(st.lists(texts, max_size=4))
def test_many_at_once_are_each_by_itself(several: list[str]) -> None:
    for vocabulary in (subwords(), words()):
        assert vocabulary.encode_all(several) == [vocabulary.encode(text) for text in several]


@settings(max_examples=50, deadline=None)
@given(texts)
def test_chunks_join_up_to_the_text(text: str) -> None:
    chunks = subwords().chunks(tidy(text))
    assert "".join(chunks).replace(WORD_BEGINS, " ").strip() == tidy(text)
    assert all(WORD_BEGINS not in chunk[1:] for chunk in chunks)


@pytest.mark.parametrize("make", [subwords, words])
def test_json_and_back(make) -> None:  # type: ignore[no-untyped-def]
    old = make()
    new = Vocabulary.from_json(old.to_json())
    assert new.words == old.words and len(new) == len(old)
    assert new.tokens == old.tokens and new.merges == old.merges and new.to_json() == old.to_json()
    for text in [*STRANGE, *(text for pair in sentences() for text in pair)]:
        assert new.pieces(tidy(text)) == old.pieces(tidy(text))
        assert new.decode(new.encode(text)) == old.decode(old.encode(text))


def test_special_tokens_come_first_and_bytes_next() -> None:
    tokens = subwords().tokens
    assert [tokens[name] for name in (*SPECIAL, *BYTES)] == list(range(3 + 256))
    assert sorted(tokens.values()) == list(range(len(subwords())))
    assert [subwords().name(token) for token in range(3)] == list(SPECIAL)


@pytest.mark.parametrize("size", [100, 150, 200])
def test_as_many_subwords_as_asked_for_beside_the_bytes(size: int) -> None:
    learned = [text for pair in sentences() for text in pair]
    assert len(learn_subwords(learned, size, rare=1)) == 3 + 256 + size
    assert 3 + 256 < len(learn_subwords(learned, size)) <= 3 + 256 + size


def test_rare_characters_become_bytes() -> None:
    learned = ["zebra zone ab", "ab ab पप प ñ ñ"]
    vocabulary = learn_subwords(learned, 60, rare=3)
    pieces = set("".join(set(vocabulary.tokens) - set(SPECIAL) - set(BYTES)))
    assert pieces == {"a", "b", "प", WORD_BEGINS}  # a is seen 4 times, प 3 times, z, e and ñ twice
    assert names(vocabulary, "ñ") == [WORD_BEGINS, "<0xC3>", "<0xB1>"]
    assert names(vocabulary, "ab") == [WORD_BEGINS + "ab"]
    assert vocabulary.decode(vocabulary.encode("zebra ñandú")) == "zebra ñandú"


def test_a_word_has_the_same_pieces_before_punctuation() -> None:
    whole = names(subwords(), "The boy is tall")
    assert names(subwords(), "The boy is tall.")[: len(whole)] == whole


def test_merges_are_ranked_and_make_pieces() -> None:
    assert subwords().merges
    assert all(first + second in subwords().tokens for first, second in subwords().merges)
    assert words().merges == []


def test_frequent_words_are_one_piece() -> None:
    assert names(subwords(), "is") == [WORD_BEGINS + "is"]
    assert names(subwords(), "आहे") == [WORD_BEGINS + "आहे"]


def test_words_are_lower_cased_and_punctuation_is_apart() -> None:
    vocabulary = learn_words(["The boy, who isn't HERE, sees (it)."])
    assert names(vocabulary, "the BOY isn't here.") == ["the", "boy", "isn't", "here", "."]
    assert names(vocabulary, "The girl") == ["the", UNKNOWN]
    assert set(vocabulary.tokens) == {*SPECIAL, UNKNOWN, "the", "boy", "who", "isn't", "here", "sees", "it", *",()."}


def test_words_keep_marks_and_joiners() -> None:
    vocabulary = learn_words(["क्\u200dष मुलगी आहे।"])
    assert names(vocabulary, "मुलगी क्\u200dष।") == ["मुलगी", "क्\u200dष", "।"]


def test_the_most_frequent_words_are_kept() -> None:
    vocabulary = learn_words(["a a a b b c", "a b c d"], 3)
    assert set(vocabulary.tokens) == {*SPECIAL, UNKNOWN, "a", "b", "c"}
    assert names(vocabulary, "d a") == [UNKNOWN, "a"]


def test_all_words_are_kept_without_a_size() -> None:
    counts = Counter(word for english, _ in sentences() for word in english.lower().replace(".", " .").split())
    assert all(len(words().encode(word)) >= 1 and UNKNOWN not in names(words(), word) for word in counts)
    assert len(words()) >= 4 + len([word for word in counts if word.isalpha()])


@pytest.mark.parametrize(
    "text", ["The boy is here.", "Is it (really) so?", "No, the boy isn't.", "I see [a boy]; he is “here”."]
)
def test_words_are_joined_as_people_write(text: str) -> None:
    vocabulary = learn_words([text])
    assert vocabulary.decode(vocabulary.encode(text)) == text.lower()
