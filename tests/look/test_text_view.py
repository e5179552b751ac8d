"""A text with its words marked."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from regard.look.colours import colour
from regard.look.layout import Cell, TextLabel
from regard.look.page import page
from regard.look.svg import render
from regard.look.text_view import CONTEXT_WORDS, LONG_TEXT, TEXT_WIDTH, marked, passage, text_picture
from regard.look.trace import AttentionWeights, Candidate, Side, Trace
from regard.look.words import Span
from tests.look.browser import Open
from tests.look.test_browser_layout import rgb


def traced(text: str, weights: dict[int, float], label: str = "good") -> Trace:
    """Words are what blanks separate; those not named share what is left."""
    places = [(result.start(), result.end()) for result in re.finditer(r"\S+", text)]
    rest = (1 - sum(weights.values())) / max(1, len(places) - len(weights))
    values = np.array([weights.get(number, rest) for number in range(len(places))], np.float32)
    source = Side(text, [Span(text[start:end], start, end) for start, end in places])
    target = Side(label, [Span(label, 0, len(label))])
    candidates = [Candidate(label, 0.9, -0.1), Candidate("other", 0.1, -2.3)]
    return Trace(source, target, [AttentionWeights("pool", values[None, None, None])], (), candidates)


def test_in_a_terminal() -> None:
    shown = marked(passage(traced("a fine and moving film", {3: 0.6, 1: 0.24})), width=12)
    assert shown.split("\n")[:5] == ["good 0.90  other 0.10", "", "a fine▃ and", "moving█ film", ""]
    assert "looked at most: moving 0.60 · fine 0.24" in shown


def test_in_colours_nothing_is_added_to_the_words() -> None:
    shown = marked(passage(traced("a fine and moving film", {3: 0.8})), width=80, colours=True)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "a fine and moving film" in plain and shown.count("\x1b[0m") == 5


def test_a_very_long_text_keeps_what_matters() -> None:
    words = [f"w{number}" for number in range(5 * LONG_TEXT)]
    strong = {900: 0.5, 901: 0.2}
    given = traced(" ".join(words), strong)
    # all others have the same small weight, and ties go to the first of them
    result = [each.word for each in passage(given).words]
    assert result[0] == "w0" and "…" in result and len(result) < LONG_TEXT
    first = result.index("w900")
    assert (
        result[first - CONTEXT_WORDS : first + CONTEXT_WORDS + 2]
        == words[900 - CONTEXT_WORDS : 901 + CONTEXT_WORDS + 1]
    )


def test_the_picture_holds_every_word_inside_its_frame() -> None:
    given = passage(traced("one two three four five " * 30, {7: 0.5}))
    picture = text_picture(given)
    texts = [item for item in picture.items if isinstance(item, TextLabel) and not item.faint]
    cells = [item for item in picture.items if isinstance(item, Cell)]
    assert len(texts) == len(cells) == 150
    assert max(range(150), key=lambda number: cells[number].level) == 7
    for cell, words in zip(cells, texts, strict=True):
        assert cell.x >= 0 and cell.x + cell.width <= picture.width and cell.y + cell.height <= picture.height
        assert cell.x < words.x < cell.x + cell.width and cell.y < words.y < cell.y + cell.height
    ElementTree.fromstring(render(picture))


def test_from_right_to_left() -> None:
    picture = text_picture(passage(traced("الفيلم جميل جدا", {1: 0.9})))
    cells = [item for item in picture.items if isinstance(item, Cell)]
    assert cells[0].x > cells[1].x > cells[2].x and cells[0].x > TEXT_WIDTH / 2


def test_an_answer_of_several_words_is_refused() -> None:
    given = traced("a b", {})
    sentence = Trace(
        given.source,
        Side("x y", [Span("x", 0, 1), Span("y", 2, 3)]),
        [AttentionWeights("pool", np.full((1, 1, 2, 2), 0.5, np.float32))],
    )
    with pytest.raises(ValueError, match="view: text is for one answer"):
        passage(sentence)


def test_a_page_marks_the_whole_text_before_anything_is_pointed_at(show: Open) -> None:
    words = [f"w{number}" for number in range(300)]
    trace = traced(" ".join(words), {100: 0.02, 200: 0.01})
    tab = show(page([trace]))
    grounds = tab.locator(".pair [data-word]").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one).backgroundColor)"
    )
    assert len(grounds) == 301 and grounds[100] == rgb(colour(1.0))
    assert len({grounds[100], grounds[200], grounds[50]}) == 3  # also of weights far below 1/255
    summary = " ".join(tab.locator(".summary").inner_text().split())
    assert summary.startswith("good looks at w100 0.0200 w200 0.0100")
