"""What a training run shows in a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from regard.commands.screen import Terminal


def terminal(is_terminal: bool, quiet: bool = False) -> tuple[Terminal, io.StringIO]:
    result, file = Terminal(quiet), io.StringIO()
    result._console = Console(file=file, force_terminal=is_terminal, highlight=False, width=100)
    return result, file


def test_a_terminal_shows_what_goes_on_before_the_first_update_and_between() -> None:
    screen, _ = terminal(True)
    screen.status("learning the vocabulary")
    assert screen._bar is not None and screen._bar.tasks[0].description == "learning the vocabulary …"
    screen.advance(7, 20, "loss 3.2")
    screen.status("validating")
    (task,) = screen._bar.tasks
    assert (task.completed, task.total, task.description) == (7, 20, "validating …")
    screen.close()
    assert screen._bar is None
    screen.status("scoring dev")
    screen.close()


@pytest.mark.parametrize(("is_terminal", "quiet"), [(False, False), (True, True)])
def test_elsewhere_nothing_moves(is_terminal: bool, quiet: bool) -> None:
    screen, file = terminal(is_terminal, quiet)
    screen.status("reading")
    screen.advance(3, None, "loss 3.2")
    screen.close()
    assert file.getvalue() == ""


@pytest.mark.parametrize(
    ("text", "unit", "line"),
    [("loss 3.2", "update", "update 1,007 of 2,000  loss 3.2"), ("pairs", "", "1,007 of 2,000 pairs")],
)
def test_lines_without_a_terminal(text: str, unit: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.commands.screen.LINE_SECONDS", -1.0)
    screen, file = terminal(False)
    screen.advance(1007, 2000, text, unit)
    assert file.getvalue() == line + "\n"
