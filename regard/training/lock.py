"""A lock on a model's folder: one training at a time.

It is a lock of the operating system on a file next to the folder (`.NAME.lock`), because the folder itself is replaced
when a training begins anew. It ends with the process, however that ends. The run that holds the lock removes the file;
one that a killed run left behind is not locked, and the next run takes it over.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.training.progress import Screen

NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}  # errors of file systems that have no locks

if sys.platform == "win32":
    import msvcrt

    LOCKED_BYTE = 1 << 20
    """the offset of the byte that is locked: others may still read the note before it"""

    def _lock_now(descriptor: int) -> None:
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock_now(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(folder: Path, screen: Screen) -> Iterator[None]:
    """Hold the lock on `folder`, which need not exist; raise a ValueError if another training holds it.

    Missing parent folders are created, and removed again if they are still empty at the end.
    """
    path = folder.with_name(f".{folder.name}.lock")
    created = _make_parents(folder)
    try:
        descriptor = _acquire(path, folder, screen)
        try:
            yield
        finally:
            _release(descriptor, path)
    finally:
        for parent in reversed(created):
            with suppress(OSError):  # not empty
                parent.rmdir()


def _make_parents(folder: Path) -> list[Path]:
    """Create the missing parent folders, and return them, the uppermost first."""
    missing = [parent for parent in folder.parents if not parent.exists()][::-1]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ValueError(f"{folder}: cannot be written: {folder.parent} is a file") from None
    except OSError as error:
        raise _unwritable(folder, error) from None
    return missing


def _acquire(path: Path, folder: Path, screen: Screen) -> int:
    """Lock the lock file, write into it who holds it, and return its descriptor."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise _unwritable(folder, error) from None
        try:
            _lock_now(descriptor)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                holder = _holder(descriptor)
                os.close(descriptor)
                raise ValueError(f"{folder}: another training is running there{holder}") from None
            screen.say(f"{folder}: its file system has no locks; a second training there would not be noticed")
        if _still_there(descriptor, path):
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}, since {since}".encode())
            return descriptor
        os.close(descriptor)  # its holder removed it after it was opened and before it was locked: try again


def _holder(descriptor: int) -> str:
    """Return the note about who holds the lock, in parentheses, or nothing."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    note = os.read(descriptor, 1000).decode("utf-8", errors="replace")
    return f" ({note})" if note else ""


def _still_there(descriptor: int, path: Path) -> bool:
    """Return whether the path still names the file of this descriptor."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _release(descriptor: int, path: Path) -> None:
    """Remove the file while it is locked, so that nobody locks a file that is about to be removed."""
    if sys.platform == "win32":  # open files cannot be removed there
        os.close(descriptor)
    with suppress(OSError):
        path.unlink()
    if sys.platform != "win32":
        os.close(descriptor)


def _unwritable(folder: Path, error: OSError) -> ValueError:
    return ValueError(f"{folder}: cannot be written: {error.strerror or error}")
