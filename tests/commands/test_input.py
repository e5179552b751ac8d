"""What commands read: in chunks, and from a pipe as soon as there is something to answer."""

from __future__ import annotations

import gzip
import io
import os
import select
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from regard.commands.input import MAX_CHUNK_LINES, ArrivingLines, chunks

ECHO = """
import sys
from regard.commands.input import chunks
for chunk in chunks(None, None):
    print(len(chunk), *map(ascii, chunk), flush=True)
"""
"""each chunk as one line: how many, and which"""


def started(code: str = ECHO) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def answer(process: subprocess.Popen[bytes], seconds: float = 30.0) -> bytes:
    assert process.stdout is not None
    prepared, _, _ = select.select([process.stdout], [], [], seconds)
    assert prepared, "no answer came"
    return process.stdout.readline()


def test_a_program_that_waits_for_its_answer_gets_it() -> None:
    with started() as process:
        assert process.stdin is not None
        for text in ("one", "two", "thrée"):
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            assert answer(process) == f"1 {text!a}\n".encode()
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_character_that_comes_in_two_halves_is_one() -> None:
    with started() as process:
        assert process.stdin is not None
        for part in ("é".encode()[:1], "é".encode()[1:] + b"\r", b"\n"):
            process.stdin.write(part)
            process.stdin.flush()
            threading.Event().wait(0.05)
        assert answer(process) == b"1 '\\xe9'\n"
        process.stdin.close()


def test_much_is_read_in_large_chunks() -> None:
    data = "".join(f"line {number}\n" for number in range(1000)).encode()
    done = subprocess.run([sys.executable, "-c", ECHO], input=data, capture_output=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert sum(int(row[0]) for row in rows) == 1000
    assert max(int(row[0]) for row in rows) == MAX_CHUNK_LINES


def lines_of(data: bytes) -> list[str]:
    """Through a real pipe."""
    done = subprocess.run([sys.executable, "-c", ECHO], input=data, capture_output=True, check=True)
    return [eval(text) for row in done.stdout.decode().splitlines() for text in row.split(" ", 1)[1].split(" ")]


def test_lines_are_those_of_a_file() -> None:
    data = b"\xef\xbb\xbffirst\r\n\n\xc2\x85\xe2\x80\xa8x\nlast,no\tend"
    assert lines_of(data) == ["first", "", "\x85\u2028x", "last,no\tend"]


def test_nothing_comes() -> None:
    assert list(ArrivingLines(io.BytesIO(b""))) == []
    assert list(ArrivingLines(io.BytesIO(b"\n"))) == [b"\n"]


def test_one_line_of_many_bytes_is_one_line() -> None:
    (line,) = ArrivingLines(io.BufferedReader(io.BytesIO(b"x" * 3_000_000)))  # type: ignore[arg-type]
    assert len(line) == 3_000_000


def test_a_file_is_read_in_chunks_also_from_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x\n" * 600))
    assert [len(chunk) for chunk in chunks(None, tmp_path / "a.gz")] == [256, 256, 88]
    assert [len(chunk) for chunk in chunks(["x"] * 300, None)] == [256, 44]


def test_a_terminal_is_answered_line_by_line() -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen([sys.executable, "-c", ECHO], stdin=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    with process:
        os.write(ours, b"typed\n")
        assert answer(process) == b"1 'typed'\n"
        os.write(ours, b"\x04")
        assert process.wait(10) == 0
    os.close(ours)


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        (["x"], "file", "texts or --input"),
        (["a", "b\udcff"], None, "text 2 is not UTF-8"),
        (None, "nowhere", "nowhere: expected a file, and there is none"),
        (None, ".", "got a folder"),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(
    text: list[str] | None, path: str | None, why: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=why):
        chunks(text, None if path is None else tmp_path / path)
