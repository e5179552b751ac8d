"""Patterns drawn in text."""

from regard import Causal, Full, Window, per_head


def test_a_row_a_query() -> None:
    assert Causal().draw(3) == "■ · ·\n■ ■ ·\n■ ■ ■"
    assert Window(1).draw(2, 4, position=1) == "■ ■ ■ ·\n· ■ ■ ■"


def test_a_drawing_for_each_head() -> None:
    assert per_head([Full(), Causal()]).draw(2) == "head 0\n■ ■\n■ ■\n\nhead 1\n■ ·\n■ ■"


def test_large_patterns_are_drawn_in_cells() -> None:
    lines = Window(10).draw(640).splitlines()
    assert lines[-1] == "(a cell is 10 × 10 positions)"
    assert len(lines) == 65 and len(lines[0]) == 64
    assert lines[32][32] == "█" and lines[0][40] == "·"
