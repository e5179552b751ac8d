"""The output of `--look`: a view in the terminal for each answer, files of all answers at the end, or both."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from regard.commands.options import Evidence, Look, check_distinct, refuse_idle
from regard.commands.screen import complain

if TYPE_CHECKING:
    from regard.look.trace import Trace


View = Annotated[str | None, Option(help="With --look, of pictures and the terminal: grid or links. Default: grid.")]


@dataclass(frozen=True)
class LookOptions:
    """How the attention is shown."""

    look: Look = None
    view: View = None
    evidence: Evidence = False


def refuse_text_view(view: str | None) -> None:
    """Raise a ValueError for the view that shows labels."""
    if view == "text":
        raise ValueError("view: expected grid or links, got 'text', which is for labels")


class LookOutput:
    """Collects the traces of answers and shows them.

    Each of `looks` is "terminal" or the name of a file; one that cannot be written is refused at once. `output` is
    where the results go, which must be another file; None: standard output.
    """

    def __init__(
        self, looks: Sequence[str], view: str | None, evidence: bool, output: Path | None, as_json: bool
    ) -> None:
        from regard.look import views

        if not looks:
            refuse_idle({"--view": view, "--evidence": evidence}, "expected --look with it")
        self.wanted = bool(looks)
        self._terminal = "terminal" in looks
        if as_json and output is None and self._terminal:
            raise ValueError("--json and --look terminal both write on standard output: expected one of them, or -o")
        self._files = [Path(look) for look in dict.fromkeys(looks) if look != "terminal"]
        self._view, self._evidence = view, evidence
        self._traces: list[Trace] = []
        check_distinct({"-o": output} | {f"--look {file.name}": file for file in self._files})
        views.check_shown(view, self._files, self._terminal)
        for file in self._files:
            views.check(file)

    def show(self, traces: list[Trace], examine: Callable[[Trace], Trace]) -> None:
        """Show traces in the terminal now, and in files at the end; `examine` adds evidence, if requested."""
        from regard.look import views
        from regard.look.terminal import in_colour

        if not self.wanted:
            return
        examined = [examine(trace) for trace in traces] if self._evidence else traces
        for trace in examined if self._terminal else ():
            print("\n" + views.in_terminal(trace, colours=in_colour(sys.stdout), view=self._view) + "\n")
        if self._files:
            self._traces += examined

    def finish(self, quiet: bool) -> None:
        """Write the files, with a notice for each. An error is raised after the other files are written."""
        for notice in self._write_files():
            if not quiet:
                complain(notice)

    def _write_files(self) -> Iterator[str]:
        """Write the files and yield a notice for each."""
        from regard.look import views

        if self._files and not self._traces:
            yield "no text came to look at"
            return
        failed: list[ValueError | OSError] = []
        for file in self._files:
            try:
                written = views.save(self._traces, file, view=self._view)
            except (ValueError, OSError) as error:
                failed.append(error)
            else:
                yield from (f"written: {path}" for path in written)
        if failed:
            raise failed[0]
