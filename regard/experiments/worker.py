"""The process of one run (processes.py). Its standard input has the job as a line of JSON; it writes events to its
standard output, as JSON lines.

The worker stops, with a checkpoint, when the line "stop" comes; and at once when standard input ends, because then the
process that started it is gone and nobody would wait for it.
"""

from __future__ import annotations

import _thread
import json
import os
import sys
import threading
import traceback
from importlib import import_module
from typing import Any, TextIO

from regard.runtime.interrupts import EXIT_CODE

STOP = "stop"


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


def watch(lines: TextIO) -> None:
    """Interrupt the main thread when the line "stop" comes; end the process when standard input ends."""
    for line in lines:
        if line.strip() == STOP:
            _thread.interrupt_main()
    os._exit(EXIT_CODE)


def _reason(error: Exception) -> str:
    """Return the first line of an error, with its type if it is not one that describes a mistake of the user."""
    text = str(error).strip().split("\n")[0]
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    described = text and isinstance(error, (ValueError, TypeError, OSError))
    return text if described else ": ".join(part for part in (type(error).__name__, text) if part)


def main() -> None:
    given = json.loads(sys.stdin.readline())
    job = getattr(import_module(given["module"]), given["kind"])(**given["job"])
    sys.argv = ["regard", *job.command]  # what the model's card says it was made by
    threading.Thread(target=watch, args=(sys.stdin,), daemon=True).start()
    screen = EventScreen(sys.stdout)
    try:
        job.execute(screen)
    except KeyboardInterrupt:
        code = EXIT_CODE
    except Exception as error:
        traceback.print_exc()
        screen.send(failed=_reason(error))
        code = 1
    else:
        code = 0
    os._exit(code)  # the thread that waits for standard input would delay the usual end


if __name__ == "__main__":
    main()
