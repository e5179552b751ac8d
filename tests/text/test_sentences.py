"""The sentences of a text."""

from __future__ import annotations

import pytest

from regard.text.sentences import sentences, several_sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Rahul is a good boy.", ["Rahul is a good boy."]),
        ("Rahul is a good boy. The girl is reading.", ["Rahul is a good boy.", "The girl is reading."]),
        ("Stop! Thief!", ["Stop!", "Thief!"]),
        ("¡Hola! ¿Qué tal?", ["¡Hola!", "¿Qué tal?"]),
        ('He said: "Go." Then he left.', ['He said: "Go."', "Then he left."]),
        ("Really?! “Yes.” No.", ["Really?!", "“Yes.”", "No."]),
        ("Wait... what?", ["Wait... what?"]),
        ("It costs 3.50 dollars. J. Smith paid.", ["It costs 3.50 dollars.", "J. Smith paid."]),
        ("Dr. Rao and Mrs. Rao came. They ate.", ["Dr. Rao and Mrs. Rao came.", "They ate."]),
        ("We met at 5 p.m. in town.", ["We met at 5 p.m. in town."]),
        ("राम गेला। सीता आली।", ["राम गेला।", "सीता आली।"]),
        ("你好。再见！好", ["你好。", "再见！", "好"]),
        ("एक. दोन.", ["एक.", "दोन."]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize("text", ["a. B? C! d", "... ?", "A.  B", "“A.” B. C"])
def test_nothing_but_spaces_is_lost(text: str) -> None:
    assert "".join(sentences(text)).replace(" ", "") == text.replace(" ", "")


def test_several_sentences() -> None:
    assert several_sentences(["One.", "One. Two.", "One", "One! Two! Three!"]) == 0.5
    assert several_sentences([]) == 0.0
