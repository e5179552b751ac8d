"""What counts as a token, and how punctuation is split off."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment.tokens import counted_form, has_long_words, split_punctuation, split_words, tokens
from regard.text.normal import tidy


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("   ", []),
        (" a  b\tc ", ["a", "b", "c"]),
        ("10\u00a0000 euros", ["10\u00a0000", "euros"]),
        ("a \u00a0 b", ["a", "\u00a0", "b"]),
        ("a\u2028b \x85", ["a\u2028b", "\x85"]),
    ],
)
def test_blanks_alone_separate_tokens(line: str, expected: list[str]) -> None:
    assert tokens(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Is it so?", "Is it so ?"),
        ('"Yes", she said...', '" Yes " , she said . . .'),
        ("l'ami d’Anne", "l ' ami d ’ Anne"),
        ("It costs $3.50, or 1,000:", "It costs $ 3.50 , or 1,000 :"),
        ("1990-95 a-b 5. .5", "1990-95 a - b 5 . . 5"),
        ("विद्यार्थ्यांच्या पुस्तकं।", "विद्यार्थ्यांच्या पुस्तकं ।"),
        ("क्\u200dष (न\u200cम)", "क्\u200dष ( न\u200cम )"),
        ("  two\u00a0words  ", "two words"),
        ("", ""),
    ],
)
def test_punctuation_is_split_off(line: str, expected: str) -> None:
    assert split_punctuation(line) == expected


@settings(deadline=None)
@given(st.text())
def test_splitting_moves_nothing_but_blanks_and_is_done_once(line: str) -> None:
    result = split_punctuation(line)
    assert result.replace(" ", "") == tidy(line).replace(" ", "")
    assert split_punctuation(result) == result


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Is it so?", "Is it so ?"),
        ("我喝茶。", "我 喝 茶 。"),
        ("我喝 tea!", "我 喝 tea !"),
        ("ชื่อ", "ชื่ อ"),
        ("हिन्दी है", "हिन्दी है"),
    ],
)
def test_characters_of_scripts_without_spaces_are_split(line: str, expected: str) -> None:
    assert split_words(line) == expected


def test_long_words_without_spaces_are_noticed() -> None:
    assert has_long_words("a 我喝茶我喝茶我喝茶我喝茶我") and not has_long_words("我 喝 茶 " * 9)
    assert not has_long_words("Donaudampfschifffahrtsgesellschaft")


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("Dog.", "dog"),
        ("«Élan»", "élan"),
        ("jean-pierre,", "jean-pierre"),
        ("...", "..."),
        ("ﬁn", "fin"),
        ("(3.50)", "3.50"),
    ],
)
def test_statistics_count_words_without_case_and_outer_punctuation(token: str, expected: str) -> None:
    assert counted_form(token) == expected
