"""Mutations of corpora: lines, columns, encodings, JSON objects and gzip."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path

from fuzzing.file_mutations import (
    Draw,
    Mutation,
    append,
    delete,
    flip_bytes,
    neighbour,
    odd_content,
    repeat_part,
    truncate,
    zero_part,
)

ODD_LINES = [
    b"",
    b"\t",
    b"\t\t\t",
    b"a",
    b"a\t",
    b"\tb",
    b"a\tb\tc\td",
    b" \t ",
    b"\xff\xfe\tb",
    b"a\x00b\tc\x00",
    b"\r",
    b"\x85\tb",
    "\u2028\tb".encode(),
    "\u200d\t\u200d".encode(),
    "e\u0301".encode() * 500 + b"\tb",
    b"\x1b[2J\tb",
    b"\xed\xa0\x80\tb",
    b"<pad> <s> </s>\t<0x41> <unk>",
    b"\x1f\x1f\t\x1f",
    "\u202eab\t\U0001f600".encode(),
    b"0\t0",
    b"," * 400 + b"\t.",
    b"{}",
    b"[]",
    b"null",
    b"3",
    b'"x"',
    b"{",
    b"[" * 100_000,
    b'{"source":' * 20_000,
    b'{"source": 3, "target": null}',
    b'{"source": "\\ud800", "target": "b"}',
    b'{"translation": {"en": "a"}}',
    b'{"translation": 3}',
    b'{"source": "a"}',
    b'{"translation": {"a": "x", "b": "y", "c": "z"}}',
    b'{"text": [], "label": {}}',
    b'{"text": "a", "label": true}',
    b'{"text": "a", "label": ' + b"9" * 6000 + b"}",
    b'{"text": "a", "label": 1e400}',
    b'{"text": "", "label": ""}',
]
LONG = [2_000, 300_000, 20_000_000]  # bytes of a long line


def odd_line(file: Path, draw: Draw) -> str:
    lines = file.read_bytes().split(b"\n")
    row, line = draw.randrange(len(lines)), draw.choice(ODD_LINES)
    lines[row : row + draw.randrange(2)] = [line] * draw.choice([1, 1, 2, 30])
    file.write_bytes(b"\n".join(lines))
    return f"line {row} is {line[:30]!r}"


def long_line(file: Path, draw: Draw) -> str:
    size = draw.choice(LONG)
    line = draw.choice([b"word ", b"x", "शब्द ".encode(), b"\t", b"a\tb ", b"\0"]) * (size // 5)
    lines = file.read_bytes().split(b"\n")
    lines.insert(draw.randrange(len(lines)), line)
    file.write_bytes(b"\n".join(lines))
    return f"a line of {len(line):,} bytes"


def change_lines(file: Path, draw: Draw) -> str:
    lines = file.read_bytes().split(b"\n")
    kind = draw.choice(["shuffle", "same", "drop", "few", "double", "reverse", "columns"])
    if kind == "shuffle":
        draw.shuffle(lines)
    elif kind == "same":
        lines = [draw.choice(lines)] * len(lines)
    elif kind == "drop":
        del lines[draw.randrange(len(lines)) :]
    elif kind == "few":
        lines = lines[: draw.choice([0, 1, 2, 3])]
    elif kind == "double":
        lines *= 2
    elif kind == "reverse":
        lines = [line[::-1] for line in lines]
    else:
        lines = [b"\t".join(reversed(line.split(b"\t"))) for line in lines]
    file.write_bytes(b"\n".join(lines))
    return f"lines: {kind}"


def encode(file: Path, draw: Draw) -> str:
    """Write the text in another encoding, with other line ends, or with a byte-order mark."""
    text = file.read_bytes().decode("utf-8", errors="replace")
    kind = draw.choice(["utf-16", "utf-16-be", "utf-8-sig", "latin-1", "utf-32", "crlf", "cr", "no end", "utf-7"])
    if kind in ("crlf", "cr"):
        content = text.replace("\n", "\r\n" if kind == "crlf" else "\r").encode()
    elif kind == "no end":
        content = text.rstrip("\n").encode()
    else:
        content = text.encode(kind, errors="replace")
    file.write_bytes(content)
    return f"as {kind}"


def json_field(file: Path, draw: Draw) -> str:
    """Change a field of some objects of JSON lines; of a table, some of its columns."""
    lines = file.read_bytes().split(b"\n")
    for row in draw.sample(range(len(lines)), min(len(lines), draw.choice([1, 5, 36]))):
        try:
            tree = json.loads(lines[row])
            key = draw.choice(sorted(tree))
            tree[key] = draw.choice([None, 3, [], {}, "", "x" * 300, {"en": "a", "mr": "b"}, True, "\ud800", 1e300])
            lines[row] = json.dumps(tree).encode()
        except (ValueError, TypeError, IndexError, RecursionError):
            parts = lines[row].split(b"\t")
            parts[draw.randrange(len(parts))] = draw.choice([b"", b" ", b"x" * 300, b"\xff", b"\0", "\u3000".encode()])
            lines[row] = b"\t".join(parts)
    file.write_bytes(b"\n".join(lines))
    return "fields changed"


def compress(file: Path, draw: Draw) -> str:
    """Compress the file, and damage that in most cases; or put a bomb in its place."""
    content = file.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = content if draw.random() < 0.5 else b"a\tb\n"
    kind = draw.choice(["whole", "cut", "flipped", "twice", "garbage", "members", "bomb", "line bomb", "empty"])
    packed = gzip.compress(content, mtime=0)
    if kind == "cut":
        packed = packed[: draw.randrange(len(packed))]
    elif kind == "flipped":
        damaged = bytearray(packed)
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        packed = bytes(damaged)
    elif kind == "twice":
        packed = gzip.compress(packed, mtime=0)
    elif kind == "garbage":
        packed += b"garbage"
    elif kind == "members":
        packed *= 3
    elif kind == "bomb":
        packed += gzip.compress(b"a\tb\n" * draw.choice([1000, 200_000]), mtime=0)
    elif kind == "line bomb":
        packed += gzip.compress(b"x" * 40_000_000, 1, mtime=0)
    elif kind == "empty":
        packed = gzip.compress(b"", mtime=0)
    file.write_bytes(packed)
    return f"gzip: {kind}"


def garbage(file: Path, draw: Draw) -> str:
    file.write_bytes(random.Random(draw.random()).randbytes(draw.choice([1, 100, 20_000])))
    return "random bytes"


CORPUS: Sequence[Mutation] = (
    *(odd_line, odd_line, odd_line, long_line, change_lines, change_lines, encode, json_field, json_field, compress),
    *(flip_bytes, flip_bytes, truncate, append, repeat_part, zero_part, delete, odd_content, neighbour, garbage),
)
