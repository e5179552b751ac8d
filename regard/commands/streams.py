"""The streams of a command: UTF-8 in every locale, with substitutes where they are closed; and where results go."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from regard.runtime.files import open_output


class ClosedOutput(io.TextIOBase):
    """Standard output of a process that was started without one: every write is an error."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def prepare_streams() -> None:
    """Make standard output and standard error UTF-8, and replace those that are closed.

    Characters that UTF-8 cannot encode, as in file names that are not UTF-8, are written as escapes.
    """
    _occupy_descriptors()
    if sys.stdout is None:
        sys.stdout = ClosedOutput()  # type: ignore[unreachable]
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # type: ignore[unreachable]  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _occupy_descriptors() -> None:
    """Open the null device for each closed descriptor, so that no file opened later becomes standard output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the system assigns the lowest free number


def abandon_output() -> None:
    """Discard what could not be written, so that the interpreter does not try again, and fail, at exit."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    with suppress(OSError, ValueError):
        sys.stdout.flush()


@contextmanager
def open_results(path: Path | None) -> Iterator[TextIO]:
    """Open what `-o` names, as `regard.runtime.files.open_output` does, or standard output if it names nothing."""
    if path is None:
        if not sys.stdout.writable():
            raise ValueError("standard output is closed; expected somewhere to write, or -o")
        yield sys.stdout
        return
    with open_output(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=True)
        try:
            yield text
            text.flush()
        finally:
            text.detach()
