"""Progress of a command, a bar in a terminal and plain lines elsewhere, and its notices; always on standard error."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from regard.commands.errors import one_line
from regard.runtime import launch
from regard.runtime.warnings import RegardWarning

LINE_SECONDS = 20.0  # the interval between lines of progress without a terminal


class Terminal:
    """The progress of a training run in a terminal; implements `regard.training.progress.Screen`."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet or launch.rank() > 0  # of several processes only the first shows its progress
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._last_line = time.monotonic()
        self._position: tuple[int, int | None] = (0, None)  # (updates done, total updates)

    def say(self, text: str) -> None:
        """Print a line."""
        if not self._quiet:
            self._console.print(text, markup=False, soft_wrap=True)

    def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
        """Show how much is done: move the bar, or print a line every LINE_SECONDS: "update 7 of 20  loss 3.2", or
        without a unit "7 of 20 pairs"."""
        if self._quiet:
            return
        if self._console.is_terminal:
            self._move(done, total, text)
        elif time.monotonic() - self._last_line > LINE_SECONDS:
            self._last_line = time.monotonic()
            count = f"{done:,}" + (f" of {total:,}" if total else "")
            self.say(f"{unit} {count}  {text}" if unit else f"{count} {text}")

    def status(self, text: str) -> None:
        """Show the current activity beside the bar; without a terminal, nothing."""
        if not self._quiet and self._console.is_terminal:
            done, total = self._position
            self._move(done, total, f"{text} …")

    def _move(self, done: int, total: int | None, text: str) -> None:
        self._position = done, total
        if self._bar is None:
            texts = TextColumn("{task.completed:,.0f}"), TextColumn("{task.description}")
            self._bar = Progress(BarColumn(24), *texts, TimeElapsedColumn(), console=self._console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task(text, total=total)
        assert self._task is not None
        self._bar.update(self._task, completed=done, total=total, description=text)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class ComparisonTerminal:
    """The progress of several runs in a terminal; implements `regard.experiments.compare.progress.Watcher`."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._last_lines = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line."""
        if not self._quiet:
            self._console.print(text, markup=False, soft_wrap=True)

    def show(self, lines: Sequence[str]) -> None:
        """Show the present state: in place of the last one, or without a terminal as lines every LINE_SECONDS."""
        if self._quiet:
            return
        if self._console.is_terminal:
            text = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
            if self._live is None:
                self._live = Live(text, console=self._console, transient=True, auto_refresh=False)
                self._live.start()
            self._live.update(text, refresh=True)
        elif time.monotonic() - self._last_lines > LINE_SECONDS:
            self._last_lines = time.monotonic()
            for line in lines:
                self.say(line)

    def close(self) -> None:
        """Remove the display of the present state."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def complain(text: str) -> None:
    """Print a notice or an error as one line on standard error."""
    with suppress(OSError):  # standard error is closed
        print(f"regard: {one_line(text)}", file=sys.stderr, flush=True)


@contextmanager
def warnings_as_notices() -> Iterator[None]:
    """Print each of the package's own warnings in one line while the context is open; others as Python does."""
    with warnings.catch_warnings():
        default = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, RegardWarning):
                if launch.rank() == 0:
                    complain(str(message))
            else:
                default(message, category, *place, **more)

        warnings.showwarning = show
        warnings.simplefilter("always", RegardWarning)
        yield
