"""Traces as files: which are written, and what happens when one of several cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.look import png, views
from regard.look.layout import Picture, TextLabel
from regard.look.trace import AttentionWeights, Side, Trace
from regard.look.words import Span
from tests.look.traces import arabic, chinese, marathi


def test_a_picture_that_cannot_be_made_keeps_no_other_from_being_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def save(picture: Picture, path: Path) -> None:
        if any(isinstance(item, TextLabel) and item.direction == "rtl" for item in picture.items):
            raise ValueError("no installed font has ا (Arabic)")
        path.write_bytes(b"drawn")

    monkeypatch.setattr(png, "save_picture", save)
    with pytest.raises(ValueError, match=r"a-2\.png: no installed font has ا .*; 1 of 3 pictures could not be made"):
        views.save([marathi(), arabic(), chinese()], tmp_path / "a.png", view="links")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-1.png", "a-3.png"]
    with pytest.raises(ValueError, match=r"b\.png: no installed font has ا \(Arabic\)$"):
        views.save([arabic()], tmp_path / "b.png")


def test_of_a_label_its_words_are_marked_and_what_they_look_at_is_a_grid() -> None:
    spans = [Span("good", 0, 4), Span("book", 5, 9)]
    source, target = Side("good book", spans), Side("yes", [Span("yes", 0, 3)])
    own = np.array([[0.9, 0.1], [0.25, 0.75]], np.float32)
    attentions = [
        AttentionWeights("pool", np.full((1, 1, 1, 2), 0.5, np.float32)),
        AttentionWeights("encoder", own[None, None]),
    ]
    trace = Trace(source, target, attentions)
    assert "0.25" not in views.in_terminal(trace, colours=False)
    shown = views.in_terminal(trace, colours=False, attention="encoder")
    assert [line.split()[0] for line in shown.splitlines() if "0." in line] == ["good", "book"]
    assert "0.25" in shown


def test_what_no_trace_has_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^layer: expected only 0, got 3"):
        views.save([marathi(), chinese()], tmp_path / "a.svg", layer=3)
    assert not list(tmp_path.iterdir())


def test_an_unknown_view_is_one_error_that_names_it_and_those_there_are(tmp_path: Path) -> None:
    message = r"^view: expected grid or links or text, got 'coverage'$"
    with pytest.raises(ValueError, match=message):
        views.in_terminal(marathi(), colours=False, view="coverage")
    with pytest.raises(ValueError, match=message):
        views.save([marathi()], tmp_path / "a.svg", view="coverage")
    assert not list(tmp_path.iterdir())
