"""The shades of doubtful words in a terminal."""

from __future__ import annotations

import re
from dataclasses import replace

from regard.look.colours import luminance
from regard.look.confidence_view import doubt_colour, shaded
from tests.look.traces import MARATHI, marathi

CODE = re.compile(r"\x1b\[([0-9;]*)m")


def test_doubtful_words_are_shaded_and_the_text_stays() -> None:
    trace = marathi()
    words = trace.target.text_words
    values = [0.95] * len(words)
    values[1], values[3] = 0.2, 0.6
    text = shaded(replace(trace, confidence=values))
    assert CODE.sub("", text) == MARATHI
    parts = re.findall(r"\x1b\[[0-9;]+m(.*?)\x1b\[0m", text)
    assert parts == [words[1].text, words[3].text]


def test_more_doubt_is_darker() -> None:
    lights = [luminance(doubt_colour(doubt)) for doubt in (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)]
    assert lights == sorted(lights, reverse=True)


def test_without_words_there_is_nothing_to_shade() -> None:
    trace = marathi()
    empty = replace(trace, target=replace(trace.target, text="", pieces=()), confidence=())
    assert shaded(empty) == ""
