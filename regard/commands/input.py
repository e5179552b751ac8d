"""The input of a command: texts from its arguments, or the lines of a file or of standard input."""

from __future__ import annotations

import io
import select
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from regard.text.line_limits import MAX_LINE
from regard.text.pairs import has_lone_surrogate, read_lines

MAX_CHUNK_LINES = 256  # lines that are processed together
READ_BYTES = 1 << 16  # bytes read at once


def chunks(text: list[str] | None, path: Path | None) -> Iterator[list[str]]:
    """Return chunks of texts or lines, up to MAX_CHUNK_LINES each; of standard input, fewer if no more have arrived."""
    if text and path is not None:
        raise ValueError("expected texts or --input, got both")
    if text:
        for number, each in enumerate(text, 1):
            if has_lone_surrogate(each):
                raise ValueError(f"text {number} is not UTF-8: {each!r}")
        return _chunks(iter(text), lambda: True)
    if path is not None:
        if path.is_dir():
            raise ValueError(f"{path}: expected a file, got a folder")
        if not path.exists():
            raise ValueError(f"{path}: expected a file, and there is none")
        if path.is_file():  # not a pipe
            path.open("rb").close()  # raises an error before a model is loaded
        return _chunks(read_lines(path), lambda: True)
    if sys.stdin is None:
        raise ValueError("standard input is closed; expected texts, --input or lines on standard input")
    arriving = ArrivingLines(sys.stdin.buffer)
    return _chunks(read_lines(arriving), arriving.has_next)


def _chunks(lines: Iterator[str], has_next: Callable[[], bool]) -> Iterator[list[str]]:
    """Yield chunks of lines; one is complete when it is full, or when the next line would have to be waited for."""
    chunk: list[str] = []
    for line in lines:
        chunk.append(line)
        if len(chunk) == MAX_CHUNK_LINES or not has_next():
            yield chunk
            chunk = []
    if chunk:
        yield chunk


class ArrivingLines:
    """An iterator over the lines of a stream, as bytes, each as soon as it is complete.

    `has_next` says whether another line can be read without waiting, so that a program that writes one line and waits
    for its answer gets it, while a long file is still read many lines at a time.
    """

    name = "standard input"

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer that were searched for a line end
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while not self._complete():
            self._read()
        line = bytes(self._buffer[: self._searched])
        if not line:
            raise StopIteration
        del self._buffer[: self._searched]
        self._searched = 0
        return line

    def has_next(self) -> bool:
        """Whether another line can be read without waiting."""
        while not self._complete():
            if not self._wait(0):
                return False
            self._read()
        return bool(self._buffer)

    def _complete(self) -> bool:
        """Whether the buffer starts with a complete line, or the stream has ended; the line ends at `_searched`."""
        if self._searched and self._buffer[self._searched - 1] == ord("\n"):
            return True
        end = self._buffer.find(b"\n", self._searched)
        self._searched = end + 1 if end >= 0 else len(self._buffer)
        return end >= 0 or self._ended

    def _read(self) -> None:
        self._wait(None)
        try:
            more = self._stream.read1(READ_BYTES)  # type: ignore[attr-defined]
        except OSError as error:
            raise ValueError(f"cannot read {self.name}: {error.strerror or error}") from None
        self._buffer += more
        if len(self._buffer) - self._searched > MAX_LINE:
            raise ValueError(f"{self.name}: expected lines of at most {MAX_LINE >> 20} MiB, got a longer one")
        self._ended = not more

    def _wait(self, seconds: float | None) -> bool:
        """Wait until the stream can be read, and return whether it can.

        Where `select` does not support the stream, as on Windows, return False: each line is then answered by itself.
        """
        try:
            return bool(select.select([self._stream.fileno()], [], [], seconds)[0])
        except io.UnsupportedOperation:  # a stream in memory, which never blocks
            return True
        except (OSError, ValueError):
            return False
