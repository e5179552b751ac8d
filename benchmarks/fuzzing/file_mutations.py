"""Mutations of a file whatever its format: its bytes, or something else in its place."""

from __future__ import annotations

import os
import random
import shutil
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

Draw = random.Random
Mutation = Callable[[Path, Draw], str]  # changes a file, and says how


def flip_bytes(file: Path, draw: Draw) -> str:
    content = bytearray(file.read_bytes())
    count = draw.choice([1, 1, 2, 8, 64])
    for _ in range(count if content else 0):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    file.write_bytes(content)
    return f"{count} bits flipped"


def flip_early_byte(file: Path, draw: Draw) -> str:
    content = bytearray(file.read_bytes())
    if content:
        content[draw.randrange(min(16, len(content)))] = draw.randrange(256)
    file.write_bytes(content)
    return "one of the first 16 bytes replaced"


def truncate(file: Path, draw: Draw) -> str:
    size = draw.randrange(file.stat().st_size + 1)
    os.truncate(file, size)
    return f"truncated to {size} bytes"


def append(file: Path, draw: Draw) -> str:
    with file.open("ab") as stream:
        stream.write(draw.choice([b"\0", b"\n", draw.randbytes(20), b"}" * 9, b"\xff" * 5000]))
    return "bytes appended"


def repeat_part(file: Path, draw: Draw) -> str:
    content = file.read_bytes()
    begin, end = sorted(draw.randrange(len(content) + 1) for _ in range(2))
    file.write_bytes(content[:end] + content[begin:end] * draw.choice([1, 3]) + content[end:])
    return f"bytes {begin} to {end} repeated"


def zero_part(file: Path, draw: Draw) -> str:
    content = bytearray(file.read_bytes())
    begin, end = sorted(draw.randrange(len(content) + 1) for _ in range(2))
    content[begin:end] = draw.choice([b"\0", b" ", b"\xff"]) * (end - begin)
    file.write_bytes(content)
    return f"bytes {begin} to {end} overwritten"


def delete(file: Path, _: Draw) -> str:
    file.unlink()
    return "deleted"


def odd_content(file: Path, draw: Draw) -> str:
    content = draw.choice([b"", b"{}", b"[]", b"null", b"\x80\x04K\x01.", b"[" * 200_000, b'{"a":' * 50_000])
    file.write_bytes(content)
    return f"replaced by {content[:12]!r}"


def neighbour(file: Path, draw: Draw) -> str:
    others = sorted(each for each in file.parent.iterdir() if each.is_file() and each != file)
    if not others:
        return delete(file, draw)
    other = draw.choice(others)
    shutil.copyfile(other, file)
    return f"replaced by {other.name}"


def special_file(file: Path, draw: Draw) -> str:
    """Put a link, a pipe, a folder, a device or a socket in place of the file."""
    kind = draw.choice(["pipe", "folder", "loop", "zeros", "random", "secret", "inside", "dangling", "socket"])
    content = file.read_bytes()
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "socket":
        address, here = file.name, Path.cwd()
        os.chdir(file.parent)  # the path of a socket may have 107 bytes only
        socket.socket(socket.AF_UNIX).bind(address)
        os.chdir(here)
    elif kind == "inside":
        (file.parent / "other").write_bytes(content)
        file.symlink_to("other")
    else:
        root = next(parent for parent in file.parents if (parent / "world").is_dir())
        secret = root / "world/secret" / (file.name if file.name == "card.json" else "secret.txt")
        targets = {"loop": file.name, "zeros": "/dev/zero", "random": "/dev/urandom", "dangling": "nowhere"}
        file.symlink_to(targets.get(kind, str(secret)))
    return f"replaced: {kind}"


ANY_FILE: Sequence[Mutation] = (
    flip_bytes,
    flip_bytes,
    flip_early_byte,
    truncate,
    append,
    repeat_part,
    zero_part,
    delete,
    odd_content,
    neighbour,
    special_file,
    special_file,
)
