"""The screen of a command: a bar that moves in a terminal, plain lines elsewhere; always on standard error."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from regard.commands.errors import one_line

LINE_SECONDS = 20.0
"""without a terminal, how often a line says how far it is"""


class Terminal:
    """What a training run tells (see `regard.training.progress.Screen`)."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._told = time.monotonic()
        self._at: tuple[int, int | None] = (0, None)
        """how far the run is, of how much"""

    def say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, markup=False, soft_wrap=True)

    def advance(self, done: int, total: int | None, text: str) -> None:
        if self._quiet:
            return
        if self._console.is_terminal:
            self._move(done, total, text)
        elif time.monotonic() - self._told > LINE_SECONDS:
            self._told = time.monotonic()
            self.say(f"update {done:,}" + (f" of {total:,}" if total else "") + f"  {text}")

    def status(self, text: str) -> None:
        """Show what goes on; without a terminal, nothing."""
        if not self._quiet and self._console.is_terminal:
            done, total = self._at
            self._move(done, total, f"{text} …")

    def _move(self, done: int, total: int | None, text: str) -> None:
        self._at = done, total
        if self._bar is None:
            columns = (
                BarColumn(24),
                TextColumn("{task.completed:,.0f}"),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task(text, total=total)
        assert self._task is not None
        self._bar.update(self._task, completed=done, total=total, description=text)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def complain(text: str) -> None:
    """Print a notice or an error beside the results, as one line."""
    with suppress(OSError):  # nobody hears it
        print(f"regard: {one_line(text)}", file=sys.stderr, flush=True)
