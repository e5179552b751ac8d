"""What is odd about weights made to be odd."""

import numpy as np
import pytest

from regard.look.diagnostics import MEASURES, diagnose, overall
from regard.look.trace import Trace
from regard.look.words import Span
from tests.look.test_trace import traced

SOURCE, TARGET = "he drinks hot tea .", "तो गरम चहा ."


def odd(weights: list[list[float]]) -> Trace:
    sides = []
    for text in (SOURCE, TARGET):
        places = [0, *(place + 1 for place, character in enumerate(text) if character == " ")]
        result = [Span(text[a:].split(" ")[0], a, a + len(text[a:].split(" ")[0])) for a in places]
        sides.append([*result, Span("", len(text), len(text))])
    return traced(SOURCE, TARGET, *sides, np.array(weights, np.float32))


GOOD = [
    [1, 0, 0, 0, 0, 0],
    [0, 0.5, 0.5, 0, 0, 0],
    [0, 0.5, 0, 0.5, 0, 0],
    [0, 0, 0, 0, 1, 0],
    [0, 0, 0, 0, 0, 1],
]


def test_nothing_is_odd() -> None:
    result = diagnose(odd(GOOD))
    assert result.missed == result.repeated == []
    assert result.coverage == [1, 1, 0.5, 0.5, 1, 0]
    assert result.entropy == pytest.approx(0.5) and result.punctuation == pytest.approx(0.25) and result.end == 0


def test_a_word_left_out_and_one_said_again_and_again() -> None:
    result = diagnose(odd([[0.9, 0.1, 0, 0, 0, 0]] * 3 + [[0, 0, 0, 0, 0.5, 0.5], [0, 0, 0, 0, 0, 1]]))
    assert result.missed == ["hot", "tea"] and result.repeated == ["he"]
    assert result.end == pytest.approx(0.125)
    assert result.measure("missed") == 2 and result.measure("repeated") == 1


def test_all_together() -> None:
    one, other = diagnose(odd(GOOD)), diagnose(odd([[0, 0, 0, 0, 0, 1.0]] * 5))
    result = overall([one, other])
    assert (result.traces, result.with_missed, result.with_repeated) == (2, 1, 0)
    assert result.end == pytest.approx(0.5) and result.entropy == pytest.approx(0.25)
    assert len(result.lines()) == 5


def test_measures_are_named() -> None:
    assert all(diagnose(odd(GOOD)).measure(name) >= 0 for name in MEASURES)
    with pytest.raises(ValueError, match="got 'coverage'"):
        diagnose(odd(GOOD)).measure("coverage")
    with pytest.raises(ValueError, match="got none"):
        overall([])
