"""The grid: every word, columns under their heads, lines within the width."""

import io
import re

import numpy as np
import pytest
from rich.cells import cell_len

from regard.look.table import END, Table, table
from regard.look.terminal import bar, grid, in_colour
from regard.look.words import Span
from regard.text.boundaries import graphemes
from tests.look.test_trace import drawn, traced

LATIN = "The old man is reading a newspaper in the garden.", "Le vieil homme lit un journal dans le jardin."
MIXED = "The old man is reading a newspaper.", "म्हातारा माणूस वर्तमानपत्र वाचत आहे."
WIDE = "I drink 咖啡 ☕ now.", "我 现在 喝 咖啡。"


def trace(source: str, target: str) -> Table:
    """Pieces are the words, and the end token."""
    sides = []
    for text in (source, target):
        words = [Span(result.group(), result.start(), result.end()) for result in re.finditer(r"\S+", text)]
        sides.append([*words, Span("", len(text), len(text))])
    return table(traced(source, target, *sides, drawn(len(sides[1]), len(sides[0]))))


def parts(text: str) -> list[list[str]]:
    return [part.split("\n") for part in text.split("\n\n")]


@pytest.mark.parametrize(("source", "target"), [LATIN, MIXED, WIDE])
@pytest.mark.parametrize("width", [30, 60, 80, 1000])
def test_every_word_within_the_width(source: str, target: str, width: int) -> None:
    result = parts(grid(trace(source, target), width))
    heads = [word for part in result for word in part[0].split()]
    assert heads == [*source.split(), END]
    for part in result:
        assert [line.split()[0] for line in part[1:]] == [*target.split(), END]
        assert all(cell_len(line) <= width for line in part)
        assert len({cell_len(line) for line in part}) == 1  # heads and cells end at the same place


@pytest.mark.parametrize("width", [1, 10])
def test_a_column_a_part_where_there_is_no_room(width: int) -> None:
    source, target = LATIN
    result = parts(grid(trace(source, target), width))
    assert [part[0].strip() for part in result] == [*source.split(), END]


def test_wide_terminals_hold_all_in_one_part() -> None:
    assert len(parts(grid(trace(*LATIN), 1000))) == 1
    assert len(parts(grid(trace(*LATIN), 60))) > 1


def test_columns_stand_under_their_heads() -> None:
    """In letters of one cell: each number ends where its head ends."""
    source, target = LATIN
    for part in parts(grid(trace(source, target), 60)):
        ends = [result.end() for result in re.finditer(r"\S+", part[0])]
        for line in part[1:]:
            assert [result.end() for result in re.finditer(r"\d\.\d\d", line)] == ends


def test_the_numbers_are_the_weights() -> None:
    given = trace(*LATIN)
    (part,) = parts(grid(given, 1000))
    numbers = [[float(number) for number in re.findall(r"\d\.\d\d", line)] for line in part[1:]]
    np.testing.assert_allclose(numbers, given.weights, atol=0.0051)
    bars = [[result[0] for result in re.findall(r"[ ▁▂▃▄▅▆▇█] \d\.\d\d", line)] for line in part[1:]]
    assert bars == [[bar(weight) for weight in row] for row in given.weights.tolist()]


def test_bars_grow_with_the_weight() -> None:
    assert [bar(weight / 8) for weight in range(9)] == list(" ▁▂▃▄▅▆▇█")
    assert bar(-0.1) == " " and bar(1.2) == "█" and bar(0.0) == " "


def test_the_terminals_width_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert grid(trace(*LATIN)) == grid(trace(*LATIN), 50)


def test_next_to_nothing() -> None:
    assert grid(trace("", ""), 80) == f"        {END}\n{END}  █ 1.00"


def test_colours_change_nothing_but_the_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, coloured = (grid(trace(*MIXED), 60, colours) for colours in (False, True))
    assert "\x1b[" in coloured and re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_colours_are_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert in_colour(Screen()) and not in_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not in_colour(Screen())


def test_columns_run_from_right_to_left_where_the_source_does() -> None:
    (part,) = parts(grid(trace("هو يشرب الشاي", "He drinks tea"), 1000))
    assert part[0].split() == [END, "الشاي", "يشرب", "هو"]


@pytest.mark.parametrize("width", [30, 80])
@pytest.mark.parametrize("word", ["a" * 200, "म्हातारा" * 30, "咖啡" * 60, "👨\u200d👩\u200d👧" * 40])
def test_words_that_do_not_fit_are_cut(word: str, width: int) -> None:
    for part in parts(grid(trace(f"{word} is", f"so {word}"), width)):
        assert all(cell_len(line) <= width for line in part)
        assert any("…" in line for line in part)
        for cut in re.findall(r"(\S+)…", "\n".join(part)):
            assert word.startswith(cut) and "".join(graphemes(word)).startswith("".join(graphemes(cut)))


def test_no_text_moves_the_cursor_or_changes_colours() -> None:
    given = Table(["\x1b[31mred", "a\rb"], ["\x9b2J", "x\ud800"], drawn(2, 2), footnotes=["\x07bell"])
    result = grid(given, 80)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", result)
    assert all(seen in result for seen in ("␛[31mred", "a␍b", "␇bell"))
    assert len({cell_len(line) for line in parts(result)[0]}) == 1


def test_footnotes_stand_below() -> None:
    assert grid(Table(["a"], ["b"], drawn(1, 1), footnotes=["of note"]), 80).endswith("\n\nof note")
