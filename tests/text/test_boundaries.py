"""Characters and words against the `regex` module's own, and by example in many scripts."""

import unicodedata

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.boundaries import VIRAMA, direction, grapheme_bounds, graphemes, word_bounds
from tests.text.test_vocabulary import texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", ["a", "b", "c"]),
        ("मुलगा", ["मु", "ल", "गा"]),
        ("विद्यार्थी", ["वि", "द्या", "र्थी"]),
        ("क्‍ष", ["क्‍ष"]),
        ("e\u0301a", ["e\u0301", "a"]),
        ("👩‍👩‍👧🏽x", ["👩‍👩‍👧🏽", "x"]),
        ("🇮🇳🇫🇷", ["🇮🇳", "🇫🇷"]),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", ["\u1112\u1161\u11ab", "\u1100\u1173\u11af"]),
        ("한글", ["한", "글"]),
        ("a가학생들의", ["a", "가", "학", "생", "들", "의"]),
        ("", []),
    ],
)
def test_characters_as_people_see_them(text: str, expected: list[str]) -> None:
    assert graphemes(text) == expected


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])) | texts)
def test_no_character_is_cut_where_unicode_does_not_cut_it(text: str) -> None:
    """Ours may join more, as conjuncts; it cuts nowhere else. Letters that prefix others are rare, and left out."""
    text = regex.sub(r"[\p{Cc}\p{Cf}\p{GCB=Prepend}]", "", text)
    place, theirs = 0, {0}
    for found in regex.findall(r"\X", text):
        place += len(found)
        theirs.add(place)
    mine = set(grapheme_bounds(text))
    assert mine <= theirs
    if not any(unicodedata.combining(character) == VIRAMA for character in text):
        assert mine == theirs


def words(text: str, inner: list[int] | None = None) -> list[str]:
    return [text[begin:end] for begin, end in word_bounds(text, inner or [])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He is here.", ["He", "is", "here", "."]),
        ('"Yes," she said…', ['"', "Yes", ',"', "she", "said", "…"]),
        ("don't U.S. 3.5 e-mail", ["don't", "U.S", ".", "3.5", "e-mail"]),
        ("तो आहे। का?", ["तो", "आहे", "।", "का", "?"]),
        ("- ...", ["-", "..."]),
        ("I ❤️ 👨‍👩‍👧", ["I", "❤️", "👨‍👩‍👧"]),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_scripts_without_blanks_are_cut_where_pieces_begin_but_never_in_a_character() -> None:
    assert words("我现在喝咖啡。", [0, 1, 3, 4, 6]) == ["我", "现在", "喝", "咖啡", "。"]
    assert words("ที่นี่", [0, 1, 3, 4]) == ["ที่", "นี่"]
    assert words("hello", [0, 2]) == ["hello"]


@settings(max_examples=200, deadline=None)
@given(texts)
def test_words_and_blanks_make_up_the_text(text: str) -> None:
    tidied = " ".join(text.split())
    found = word_bounds(tidied, list(range(len(tidied))))
    assert "".join(tidied[begin:end] for begin, end in found) == tidied.replace(" ", "")
    assert all(begin < end for begin, end in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("he", "ltr"), ("तो", "ltr"), ("هو", "rtl"), ("12 (הוא)", "rtl"), ("a هو", "ltr"), ("", "ltr"), ("12", "ltr")],
)
def test_which_way_it_runs(text: str, expected: str) -> None:
    assert direction(text) == expected
