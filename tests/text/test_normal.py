"""The two normal forms, against cases and against what Unicode says."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.normal import match_key, tidy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  a \t b\r\n", "a b"),
        ("Quoi\u00a0? Non\u202f!", "Quoi ? Non !"),
        ("a\u3000b\u2003c\u2028d\u0085e", "a b c d e"),
        ("e\u0301", "\u00e9"),
        ("क्\u200dष", "क्\u200dष"),
        ("a\u200cb\u200bc\u00add", "a\u200cb\u200bc\u00add"),
        ("a\0b", "a\0b"),
        ("\u2028 \u00a0", ""),
    ],
)
def test_tidy(text: str, expected: str) -> None:
    assert tidy(text) == expected


@given(st.text())
def test_tidy_leaves_nfc_with_single_blanks(text: str) -> None:
    done = tidy(text)
    assert unicodedata.is_normalized("NFC", done)
    assert not re.search(r"^\s|\s$|\s\s|[^\S ]", done)
    assert re.sub(r"\s", "", done) == re.sub(r"\s", "", unicodedata.normalize("NFC", text))
    assert tidy(done) == done


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Don't go!", "dont  GO"),
        ("It’s late.", "It's late"),
        ("It´s late.", "It's late"),
        ("ｗｉｄｅ １２", "wide 12"),
        ("well-known (yes)", "Well known; yes"),
        ("मी घरी आहे।", "मी घरी आहे"),
    ],
)
def test_match_key_forgets_case_punctuation_and_width(one: str, other: str) -> None:
    assert match_key(one) == match_key(other)


@pytest.mark.parametrize(
    ("one", "other"), [("कि", "का"), ("12", "13"), ("resume", "résumé"), ("?!", "!"), ("a b", "ab")]
)
def test_match_key_keeps_letters_marks_digits_and_words(one: str, other: str) -> None:
    assert match_key(one) != match_key(other)


def test_match_key_without_any_letter_is_the_text() -> None:
    assert match_key(" ?!\t… ") == "?! …"
    assert match_key("'") == "'"


@given(st.text())
def test_match_key_is_empty_for_empty_text_only(text: str) -> None:
    assert bool(match_key(text)) == bool(tidy(text))


@given(st.text(st.characters(categories=["L", "N", "P"], max_codepoint=0x24F)))
def test_match_key_reads_tidied_text_as_the_raw_one(text: str) -> None:
    assert match_key(tidy(text)) == match_key(text)


@given(st.text(st.characters(max_codepoint=127)))
def test_the_key_of_ascii_is_that_of_any_text(text: str) -> None:
    """A letter beyond ASCII takes the general way."""
    assert match_key(f"{text} é") == (f"{match_key(text)} é" if any(map(str.isalnum, text)) else "é")
