"""Lines of files, also gzip: a line without an end, as in a compressed file of zeros, is never held whole."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAX_LINE = 1 << 24  # bytes of a line; a longer one is skipped
MAX_RATIO, RATIO_FROM = 300, 1 << 26
"""the compression beyond which gzip is no text any more, and the number of bytes from which on it is looked at"""


class LongLine(bytes):
    """The place of a line that is longer than `MAX_LINE`: it has no content, and still is a line."""

    def __bool__(self) -> bool:
        return True


def bounded_lines(stream: BinaryIO, limit: int = MAX_LINE) -> Iterator[bytes]:
    """Yield the lines of a stream, those beyond the limit as a `LongLine`."""
    while line := stream.readline(limit + 1):
        if len(line) <= limit or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(limit)
        yield LongLine()


def gzip_lines(stream: BinaryIO, name: str, limit: int = MAX_LINE) -> Iterator[bytes]:
    """Yield the lines of a gzip stream; raise a ValueError if it grows as no compressed text does."""
    file = gzip.GzipFile(fileobj=stream)
    read = 0
    for line in bounded_lines(file, limit):  # type: ignore[arg-type]
        read += len(line) or limit
        if read > RATIO_FROM and stream.seekable() and read > MAX_RATIO * stream.tell():
            raise ValueError(f"{name} is no text: as gzip it grows to more than {MAX_RATIO} times its size")
        yield line


def ending(file: Path) -> str:
    """Return the ending that says the format of a file, in lower case: the one before .gz."""
    return Path(file.stem if file.suffix.lower() == ".gz" else file.name).suffix.lower()


def raw_lines(file: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file with their ends, decompressed if its first bytes are those of gzip."""
    try:
        with open(file, "rb") as stream:
            compressed = stream.peek(2)[:2] == b"\x1f\x8b"
            if str(file).lower().endswith(".gz") and not compressed:
                raise ValueError(f"{file} is named .gz, but is not gzip")
            yield from gzip_lines(stream, str(file)) if compressed else bounded_lines(stream)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{file} is damaged gzip: {error}") from None
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror or error}") from None


def why_unreadable(line: bytes) -> str:
    """Return the reason why a line has no text."""
    return f"longer than {MAX_LINE >> 20} MiB" if isinstance(line, LongLine) else "not UTF-8"
