"""Writing the files that a user names: `-o`, `--look`, `look -o`.

A regular file is replaced atomically, by renaming, once its content is complete: readers see either the old or the new
content. A symbolic link stays and its target is replaced; mode and owner are preserved. Anything else, such as a pipe
or a device, is opened and written in place.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_DESCRIPTOR = re.compile(r"/dev/fd/([0-9]+)|/proc/(?:self|thread-self)/fd/([0-9]+)")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def write_file(path: str | Path, content: bytes | str) -> None:
    """Write the content: text as UTF-8; lone surrogates, as in names of files, are written as escapes like JSON's."""
    with open_output(path) as file:
        file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)


def resolved(path: str | Path) -> Path:
    """Return the path without symbolic links; raise a ValueError for links that lead back to themselves."""
    try:
        place = Path(path).resolve()
    except (OSError, RuntimeError):  # before Python 3.13
        place = Path(path)
    if place.is_symlink():
        raise ValueError(f"{path}: expected a file or folder, got a symbolic link that leads back to itself")
    return place


def folder_path(out: str | Path) -> Path:
    """Return the path of a folder to make: where it leads if it is a symbolic link, otherwise as it was given."""
    return resolved(out) if Path(out).is_symlink() else Path(out)


def check_output(path: str | Path) -> None:
    """Raise a ValueError if nothing can be written at `path`, before anything is computed for it."""
    place = Path(path)
    descriptor = _descriptor(place)
    if descriptor is not None:
        with _os_errors_as_value_errors(place):
            os.fstat(descriptor)
        return
    mode = _mode(place)
    if mode is None or stat.S_ISREG(mode):
        with _os_errors_as_value_errors(place):
            _Replacement(Path(os.path.realpath(place))).discard()
    elif stat.S_ISDIR(mode):
        raise ValueError(f"{place}: expected a file to write, got a folder")
    elif not os.access(place, os.W_OK):
        raise ValueError(f"{place}: cannot be written: {os.strerror(errno.EACCES)}")


def check_new_folder(folder: str | Path) -> None:
    """Raise a ValueError if no folder can be made at `folder`, before anything is computed for it."""
    place = Path(folder)
    above = next(parent for parent in place.absolute().parents if parent.exists())
    if not above.is_dir():
        raise ValueError(f"{place}: expected a folder to make it in, and {above} is a file")
    try:
        Path(tempfile.mkdtemp(prefix=".regard-", dir=above)).rmdir()
    except OSError as error:
        raise ValueError(f"{place}: cannot be made: {error.strerror}") from None


def remove_folder(folder: Path, last: str) -> None:
    """Delete a folder if it is there, as far as that is allowed.

    The file `last`, which marks it as one that may be deleted, goes last: a process that is killed leaves the mark.
    """
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != last:
                os.unlink(entry.path)
        (folder / last).unlink(missing_ok=True)
        folder.rmdir()


@contextmanager
def open_output(path: str | Path) -> Iterator[BinaryIO]:
    """Open a binary file for the content; an existing file at `path` is replaced only if no error occurs."""
    place = Path(path)
    check_output(place)
    mode, descriptor = _mode(place), _descriptor(place)
    if descriptor is not None or (mode is not None and not stat.S_ISREG(mode)):
        with _os_errors_as_value_errors(place):
            file = _open_in_place(place, descriptor)
        with file:
            yield file
        return
    with _os_errors_as_value_errors(place):
        replacement = _Replacement(Path(os.path.realpath(place)))
    try:
        yield replacement.file
        with _os_errors_as_value_errors(place):
            replacement.commit()
    except BaseException:
        replacement.discard()
        raise


class _Replacement:
    """The new content of a regular file, in a temporary file until it is complete."""

    def __init__(self, target: Path) -> None:
        self._target = target
        try:
            self._before: os.stat_result | None = target.stat()
        except FileNotFoundError:
            self._before = None
        if not target.parent.is_dir():
            raise ValueError(f"{target}: expected a folder to write into, and there is no {target.parent}")
        if self._before is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        try:
            self._name, descriptor = _create_temporary(target, private=self._before is not None)
        except OSError:  # a folder in which nothing new may be created, around a file that may be written
            if self._before is None:
                raise
            descriptor, name = tempfile.mkstemp(prefix="regard-")
            self._name = Path(name)
        self.file: BinaryIO = os.fdopen(descriptor, "wb")

    def commit(self) -> None:
        """Replace the old content with the new."""
        self.file.close()
        if self._before is not None:
            with suppress(OSError, AttributeError):  # only root may change the owner; Windows has no owners
                os.chown(self._name, self._before.st_uid, self._before.st_gid)
            os.chmod(self._name, stat.S_IMODE(self._before.st_mode))
        try:
            os.replace(self._name, self._target)
        except OSError:  # a mount point, or another file system
            if self._before is None:
                raise
            with self._name.open("rb") as content, self._target.open("wb") as target:
                shutil.copyfileobj(content, target)
            self._name.unlink()

    def discard(self) -> None:
        """Discard the new content; the old one stays."""
        with suppress(OSError):  # what could not be written cannot be flushed either
            self.file.close()
        with suppress(OSError):
            self._name.unlink(missing_ok=True)


def _create_temporary(target: Path, private: bool) -> tuple[Path, int]:
    """Create a new file with a unique name in the folder of `target`; return its path and its descriptor."""
    while True:
        name = target.parent / f".regard-{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with suppress(FileExistsError):
            return name, os.open(name, flags, 0o600 if private else 0o666)


def _open_in_place(place: Path, descriptor: int | None) -> BinaryIO:
    """Open a pipe, a device or a file descriptor of this process for writing."""
    if descriptor is None:
        return open(place, "wb")
    if descriptor == 1 and sys.stdout is not None:
        sys.stdout.flush()
    # A duplicate writes where the shell's own descriptor stands; opening the path again could truncate a file.
    return os.fdopen(os.dup(descriptor), "wb")


def _descriptor(place: Path) -> int | None:
    """Return the file descriptor of this process that the path stands for, as /dev/stdout and /dev/fd/63 do."""
    path = os.path.abspath(place)
    for _ in range(40):  # the number of symbolic links that Linux follows
        if path in _STANDARD:
            return _STANDARD[path]
        match = _DESCRIPTOR.fullmatch(path.replace(f"/proc/{os.getpid()}/", "/proc/self/"))
        if match is not None:
            return int(match[1] or match[2])
        if not os.path.islink(path):
            return None
        path = os.path.abspath(os.path.join(os.path.dirname(path), os.readlink(path)))
    return None


def _mode(place: Path) -> int | None:
    """Return the file type and permissions, with links followed; None if there is no such file."""
    try:
        return place.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{place}: cannot be written: {error.strerror}") from None


@contextmanager
def _os_errors_as_value_errors(place: Path) -> Iterator[None]:
    """Turn an OSError into a ValueError that names the path that the user gave."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{place}: cannot be written: {error.strerror or error}") from None
