"""Pairs without their full stops, and without any punctuation."""

import unicodedata

import pytest
from hypothesis import given, settings

from regard.text.normal import tidy
from regard.text.punctuation import without_punctuation, without_stop
from tests.text.test_vocabulary import texts


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("I go.", "मी जातो.", ("I go", "मी जातो")),
        ("I go .", "मी जातो ।", ("I go", "मी जातो")),
        ("I go.", "我走。", ("I go", "我走")),
        ("I go..", "मी जातो.", ("I go.", "मी जातो")),
        ("I go?", "मी जातो.", None),
        ("I go.", "मी जातो", None),
        (".", "मी जातो.", None),
        ("I go.", "।", None),
        ("", "", None),
        ("I go.", "", None),
    ],
)
def test_without_stop(source: str, target: str, expected: tuple[str, str] | None) -> None:
    assert without_stop(source, target) == expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Yes, I go.", "हो, मी जातो।", ("Yes I go", "हो मी जातो")),
        ("How are you?", "¿Cómo estás?", ("How are you", "Cómo estás")),
        ("I don't, I can’t.", "Je n'y vais pas.", ("I dont I cant", "Je n'y vais pas")),
        ("A well-known man", "Ein altbekannter S-Bahn-Fahrer!", ("A well known man", "Ein altbekannter S-Bahn-Fahrer")),
        ("In the U.S.", "En EE.UU.", ("In the US", "En EE.UU")),
        ("It is 3.5, or 10:30.", "Es ist 3,5 oder 10:30.", ("It is 3.5 or 10:30", "Es ist 3,5 oder 10:30")),
        ("«Go!» – “Go…”", "'Geh!' - \"Geh\"", ("Go Go", "Geh Geh")),
        ("5 + 5 = 10", "5 + 5 = 10", ("5 + 5 = 10", "5 + 5 = 10")),
        ("?!", "का?", None),
        ("What?", "...", None),
        ("", "", None),
    ],
)
def test_without_punctuation(source: str, target: str, expected: tuple[str, str] | None) -> None:
    assert without_punctuation(source, target) == expected


@settings(max_examples=200, deadline=None)
@given(texts)
def test_words_remain(text: str) -> None:
    """Only marks and blanks go, and what is left is tidy."""
    pair = without_punctuation(tidy(text), tidy(text))
    for side in pair or ():
        assert side == tidy(side)
        others = [[x for x in each if unicodedata.category(x)[0] in "LMN"] for each in (side, tidy(side), tidy(text))]
        assert "".join(others[0]) == "".join(others[2]) or any(map(unicodedata.combining, text))
