"""What `--look` asks for: a grid in the terminal as answers come, or a file of all of them at the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from regard.look.trace import Trace
    from regard.translator import Answer, Translator


class Looking:
    """`look` is None, "terminal" or the name of a file; one that cannot be written is refused at once."""

    def __init__(self, look: str | None, view: str | None, evidence: bool) -> None:
        from regard.look import views

        if evidence and look is None:
            raise ValueError("--evidence: expected --look with it, which shows what was found")
        self.wanted = look is not None
        self._file = None if look in (None, "terminal") else Path(str(look))
        self._view, self._evidence = view, evidence
        self._traces: list[Trace] = []
        views.check_view(view)
        if self._file is not None:
            views.check(self._file)

    def take(self, answer: Answer, translator: Translator, out: TextIO) -> None:
        """The best translation of an answer."""
        from regard.evidence import examined

        self.show(answer.translations[0].traces, lambda trace: examined(translator, trace), out)

    def show(self, traces: list[Trace], examine: Callable[[Trace], Trace], out: TextIO) -> None:
        """Traces, at once or at the end; `examine` adds evidence, if it was asked for."""
        if not self.wanted:
            return
        found = [examine(trace) for trace in traces] if self._evidence else traces
        if self._file is None:
            _show(found, self._view, out)
        else:
            self._traces += found

    def finish(self) -> list[str]:
        """Notices of what was written."""
        from regard.look import views

        if self._file is None:
            return []
        written = views.save(self._traces, self._file, view=self._view) if self._traces else []
        return [f"written: {path}" for path in written] or ["no text came to look at"]


def _show(traces: list[Trace], view: str | None, out: TextIO) -> None:
    from regard.look.terminal import in_colour
    from regard.look.views import in_terminal

    for trace in traces:
        print("\n" + in_terminal(trace, colours=in_colour(out), view=view) + "\n", file=out)
