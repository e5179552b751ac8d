"""What `--look` asks for: a grid in the terminal as answers come, or a file of all of them at the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from regard.look.trace import Trace
    from regard.translator import Answer, Translator


class Looking:
    """`look` is None, "terminal" or the name of a file; one that cannot be written is refused at once."""

    def __init__(self, look: str | None, view: str, evidence: bool) -> None:
        from regard.look import views

        if evidence and look is None:
            raise ValueError("--evidence: expected --look with it, which shows what was found")
        self.wanted = look is not None
        self._file = None if look in (None, "terminal") else Path(str(look))
        self._view, self._evidence = view, evidence
        self._traces: list[Trace] = []
        if self._file is not None:
            views.check(self._file, view)

    def take(self, answer: Answer, translator: Translator, out: TextIO) -> None:
        """The best translation of an answer."""
        from regard.evidence import examined

        if not self.wanted:
            return
        found = answer.translations[0].traces
        found = [examined(translator, trace) for trace in found] if self._evidence else found
        if self._file is None:
            _show(found, out)
        else:
            self._traces += found

    def finish(self) -> list[str]:
        """Notices of what was written."""
        from regard.look import views

        if self._file is None:
            return []
        written = views.save(self._traces, self._file, view=self._view) if self._traces else []
        return [f"written: {path}" for path in written] or ["no text came to look at"]


def _show(traces: list[Trace], out: TextIO) -> None:
    from regard.look.table import table
    from regard.look.terminal import grid, in_colour

    for trace in traces:
        print("\n" + grid(table(trace), colours=in_colour(out)) + "\n", file=out)
