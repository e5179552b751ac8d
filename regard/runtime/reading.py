"""Reading files that a stranger may have made: regular files alone, of limited size, none outside of their folder.

A pipe in place of a file would block the reader for ever, a symbolic link could lead to any file of the user, and a
size without a limit could fill the memory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

MAX_FILES = 100_000  # files of a folder whose links are checked

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


@contextmanager
def open_inside(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file of a folder for reading, without waiting for anything.

    Raise a FileNotFoundError if there is none, and a ValueError if it is no regular file, or a link out of its folder.
    """
    check_inside(path, path.parent)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"{path}: expected a file, got {_kind(mode)}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def read_bytes_inside(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file of a folder; raise a ValueError if it is larger than `max_bytes`."""
    with open_inside(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"{path}: expected at most {max_bytes:,} bytes, got more")
    return content


def read_text_inside(path: Path, max_bytes: int) -> str:
    """Return the text of a regular file of a folder; raise a ValueError if it is too large, or not UTF-8."""
    try:
        return read_bytes_inside(path, max_bytes).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: damaged: not UTF-8") from None


def check_inside(path: Path, folder: Path) -> None:
    """Raise a ValueError if a path of a folder is a symbolic link that leads out of the folder."""
    if not path.is_symlink():
        return
    target, root = os.path.realpath(path), os.path.realpath(folder)
    if not target.startswith(os.path.join(root, "")):
        raise ValueError(f"{path}: a symbolic link out of its folder, to {target}; expected a file of the folder")


def check_links(folder: Path) -> None:
    """Raise a ValueError if a folder that is going to be written has symbolic links that lead out of it."""
    count = 0
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            check_inside(Path(place, name), folder)
        count += len(folders) + len(files)
        if count > MAX_FILES:
            raise ValueError(f"{folder}: expected at most {MAX_FILES:,} files, got more")


def _kind(mode: int) -> str:
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
