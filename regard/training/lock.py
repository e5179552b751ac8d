"""A lock on a model's folder: one training at a time.

The lock is the operating system's, on a file beside the folder (`.NAME.lock`), because the folder itself is replaced by
another one when a training begins anew. It ends with the process, however that ends. The file is removed by the run
that holds it; one that a killed run left behind is not locked, and is taken over by the next run.
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

NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
"""what file systems that have no locks answer"""

if sys.platform == "win32":
    import msvcrt

    BEHIND = 1 << 20
    """the byte that is locked: others may still read what stands before it"""

    def _lock_now(descriptor: int) -> None:
        os.lseek(descriptor, BEHIND, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock_now(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(folder: Path, screen: Screen) -> Iterator[None]:
    """Hold the lock on `folder`, which need not be there; raise an error if another training holds it.

    Folders above it are made, and removed again if they are still empty at the end.
    """
    path = folder.with_name(f".{folder.name}.lock")
    made = _make_parents(folder)
    try:
        descriptor = _acquired(path, folder, screen)
        try:
            yield
        finally:
            _release(descriptor, path)
    finally:
        for parent in reversed(made):
            with suppress(OSError):  # not empty
                parent.rmdir()


def _make_parents(folder: Path) -> list[Path]:
    """Make the folders above, and return those that were not there, the uppermost first."""
    missing = [parent for parent in folder.parents if not parent.exists()][::-1]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ValueError(f"{folder}: cannot be written: {folder.parent} is a file") from None
    except OSError as error:
        raise _unwritable(folder, error) from None
    return missing


def _acquired(path: Path, folder: Path, screen: Screen) -> int:
    """Return the descriptor of the lock file, locked, with a note in it about who holds it."""
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
        os.close(descriptor)  # its holder removed it between the opening and the locking: it locks nothing


def _holder(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    note = os.read(descriptor, 1000).decode("utf-8", errors="replace")
    return f" ({note})" if note else ""


def _still_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _release(descriptor: int, path: Path) -> None:
    """Remove the file while it is locked, so that nobody locks a file that is gone a moment later."""
    if sys.platform == "win32":  # no file that is open can be removed there
        os.close(descriptor)
    with suppress(OSError):
        path.unlink()
    if sys.platform != "win32":
        os.close(descriptor)


def _unwritable(folder: Path, error: OSError) -> ValueError:
    return ValueError(f"{folder}: cannot be written: {error.strerror or error}")
