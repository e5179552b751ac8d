"""The process of one run (processes.py): its input is a job, and it stops with a checkpoint (runtime/processes.py)."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any, TextIO

from regard.runtime.processes import run_and_exit, watch_input


class EventScreen:
    """A screen that writes what happens as events; implements `regard.training.progress.Screen`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def say(self, text: str) -> None:
        """Write nothing: messages are in the log of the model."""

    def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
        self.send(done=done, total=total, text=text)

    def status(self, text: str) -> None:
        self.send(text=text)

    def close(self) -> None:
        """End nothing: the next event replaces the last one."""

    def send(self, **event: Any) -> None:
        print(json.dumps(event), file=self._out, flush=True)


def main() -> None:
    given = json.loads(sys.stdin.readline())
    job = getattr(import_module(given["module"]), given["kind"])(**given["job"])
    sys.argv = ["regard", *job.command]  # what the model's card says it was made by
    watch_input(sys.stdin)
    screen = EventScreen(sys.stdout)
    run_and_exit(lambda: job.execute(screen), lambda reason: screen.send(failed=reason))


if __name__ == "__main__":
    main()
