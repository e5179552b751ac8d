"""Processes of this package that work for another one, and the pipes between them.

The worker's standard input has its task as a line of JSON; it reports events on its standard output, as JSON lines. It
stops when the line "stop" comes; and when standard input ends, because then the process that started it is gone and
nobody would wait for it.
"""

from __future__ import annotations

import _thread
import json
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO

from regard.runtime.interrupts import EXIT_CODE

STOP = "stop"


class WorkerProcess:
    """A process that runs a module of this package; `on_event` is called with each event, in a thread of its own."""

    def __init__(
        self,
        module: str,
        task: Mapping[str, Any],
        errors: Path,
        threads: int | None,
        on_event: Callable[[dict[str, Any]], None],
    ) -> None:
        self._errors, self._on_event = errors, on_event
        errors.parent.mkdir(parents=True, exist_ok=True)
        with errors.open("wb") as file:
            self._process = subprocess.Popen(
                # -P: files of the present folder, such as a random.py, must not take the place of modules
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=worker_environment(threads),
                start_new_session=True,  # Ctrl-C comes to this process alone, which then stops the others
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._send(json.dumps(task))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def wait_for_end(self) -> tuple[int, str]:
        """Wait for the process; return its exit code and the last line that it wrote on standard error."""
        self._process.wait()
        self._reader.join()
        self._close()
        last_line = ""
        with suppress(OSError):  # it was read before
            last_line = self._errors.read_text(encoding="utf-8", errors="replace").strip().split("\n")[-1]
            self._errors.unlink()
        return self._process.returncode, last_line

    def stop(self) -> None:
        """Let the process finish what it must, and end."""
        self._send(STOP)

    def kill(self) -> None:
        """End the process at once, if it still runs."""
        if not self.has_ended:
            self._process.kill()
        self.wait_for_end()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # the process has ended, and perhaps its input is closed
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _read(self) -> None:
        """Follow the events of the process until it ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._on_event(_event(line))


def _event(line: bytes) -> dict[str, Any]:
    """Return the event of a line; an empty one for anything that a library printed."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def worker_environment(threads: int | None) -> dict[str, str]:
    """Return the environment of a worker: it imports the same package as this process.

    Threads that wait must not take time from other workers.
    """
    environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
    package = str(Path(__file__).parents[2])
    if package not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):  # not installed there
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment |= {"PYTHONPATH": os.pathsep.join(paths)}
    return environment if threads is None else environment | {"OMP_NUM_THREADS": str(threads)}


def available_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return max(1, len(affinity(0)) if affinity is not None else os.cpu_count() or 1)


# In the worker


def watch_input(lines: TextIO, at_end: Callable[[], None] = lambda: None) -> threading.Thread:
    """Start a thread that watches the input, and return it: it interrupts the main thread when the line "stop" comes,
    and ends the process, after `at_end()`, when the input ends.

    A process that a script starts in the background ignores SIGINT, and so do its workers, which then could not be
    interrupted: a worker handles it in any case.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=_watch, args=(lines, at_end), daemon=True)
    thread.start()
    return thread


def _watch(lines: TextIO, at_end: Callable[[], None]) -> None:
    for line in lines:
        if line.strip() == STOP:
            _thread.interrupt_main()
    at_end()
    os._exit(EXIT_CODE)


def reason_of(error: BaseException) -> str:
    """Return the first line of an error, with its type if it is not one that describes a mistake of the user."""
    text = str(error).strip().split("\n")[0]
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    described = text and isinstance(error, (ValueError, TypeError, OSError))
    return text if described else ": ".join(part for part in (type(error).__name__, text) if part)


def run_and_exit(work: Callable[[], None], report: Callable[[str], None]) -> NoReturn:
    """Do the work of a worker, and end its process; `report` is told the reason if it fails."""
    try:
        work()
    except KeyboardInterrupt:
        code = EXIT_CODE
    except Exception as error:
        traceback.print_exc()
        report(reason_of(error))
        code = 1
    else:
        code = 0
    os._exit(code)  # the thread that waits for standard input would delay the usual end
