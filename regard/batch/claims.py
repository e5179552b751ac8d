"""Claims: which process works on which shard, on any number of machines that share a folder.

    claims/0000/0000012.1     the first attempt at shard 12: JSON that names its owner; its mtime is a heartbeat
    claims/0000/0000012.2     the second attempt, made when the first one was stale

A claim is made by creating its file, which fails if the file is there (O_EXCL, which is atomic on NFS too). It is stale
if its owner wrote an error into it, if its owner was a process of this machine that is gone, or if its mtime has not
changed for STALE_SECONDS while this process watched: the clocks of machines are never compared. A stale attempt k is
taken over by creating the file of attempt k + 1, so of several processes one succeeds.

The result does not depend on claims: two processes that translate the same shard put the same content in place.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

HEARTBEAT_SECONDS = 10.0  # the interval in which an owner touches its claim
STALE_SECONDS = 120.0  # without a heartbeat: longer than the attribute caches of NFS (60 s)
MAX_ATTEMPTS = 3  # attempts at a shard, after which it has failed


@dataclass(frozen=True)
class Owner:
    """The process that made a claim."""

    machine: str  # host name, boot and process namespace: the processes that can see each other
    pid: int
    started: str  # when the process started, as the kernel counts; a process id is used again

    @classmethod
    def current(cls) -> Owner:
        """Return this process."""
        return cls(_machine(), os.getpid(), _start_time(os.getpid()))

    def is_gone(self) -> bool:
        """Return whether this was a process of this machine and has ended."""
        if self.machine != _machine() or os.name == "nt":  # Windows has no signal that only asks
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # there, but of another user
            pass
        return _start_time(self.pid) not in ("", self.started)


@dataclass(frozen=True)
class Claim:
    """An attempt at a shard that belongs to this process."""

    path: Path  # without the number of the attempt
    attempt: int

    @property
    def file(self) -> Path:
        return _attempt_file(self.path, self.attempt)

    def release(self) -> None:
        """Give the shard back, as if the attempt had not been made."""
        self.file.unlink(missing_ok=True)

    def fail(self, reason: str) -> None:
        """Record why the attempt failed; another one can begin at once."""
        self.file.write_text(json.dumps({"error": reason}), encoding="utf-8")

    def finish(self) -> None:
        """Remove this attempt and those before it: the shard is done."""
        for attempt in range(1, self.attempt + 1):
            _attempt_file(self.path, attempt).unlink(missing_ok=True)

    @contextmanager
    def heartbeat(self, seconds: float = HEARTBEAT_SECONDS) -> Iterator[None]:
        """Touch the claim's file at intervals while the context is open."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(seconds):
                self.touch()

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def touch(self) -> None:
        with suppress(OSError):  # removed by a process that has finished the shard
            os.utime(self.file)


@dataclass(frozen=True)
class Exhausted:
    """All attempts failed; the reason is that of the last one."""

    reason: str


class Claims:
    """Takes claims in a folder, and remembers how long it has watched those of others."""

    def __init__(self, folder: Path, seconds: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._seconds = folder, seconds
        self._watched: dict[Path, tuple[int, float]] = {}  # (mtime, when this process first saw it)

    def take(self, name: str, max_attempts: int | None = MAX_ATTEMPTS) -> Claim | Exhausted | None:
        """Return a claim on `name`; None: another process has it. `max_attempts` None: there is no limit."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        reason: str | None = None
        for attempt in count(1):
            if reason is not None and max_attempts is not None and attempt > max_attempts:
                return Exhausted(reason)
            if self._create(_attempt_file(path, attempt)):
                return Claim(path, attempt)
            reason = self._objection(_attempt_file(path, attempt))
            if reason is None:
                return None
        raise AssertionError

    def _create(self, file: Path) -> bool:
        """Create the file of a claim; return False if it is there."""
        try:
            descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(descriptor, "w", encoding="utf-8") as note:
            json.dump(asdict(Owner.current()), note)
        return True

    def _objection(self, file: Path) -> str | None:
        """Return why a claim is stale; None: it is not."""
        try:
            with file.open("rb") as note:  # opening it makes NFS ask for its present mtime
                mtime, text = os.fstat(note.fileno()).st_mtime_ns, note.read()
        except FileNotFoundError:  # removed just now
            return None
        content = _content(text)
        if "error" in content:
            return str(content["error"])
        with suppress(TypeError):  # its owner is about to write it
            if Owner(**content).is_gone():
                return "its worker died"
        before, since = self._watched.get(file, (None, 0.0))
        if mtime != before:
            self._watched[file] = mtime, self._seconds()
            return None
        return "its worker gave no sign of life" if self._seconds() - since > STALE_SECONDS else None


def remove_claims(folder: Path, name: str) -> None:
    """Remove all attempts at `name`, so that it can be attempted anew."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        _attempt_file(folder / name, attempt).unlink(missing_ok=True)


def _attempt_file(path: Path, attempt: int) -> Path:
    return path.with_name(f"{path.name}.{attempt}")


def _content(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _machine() -> str:
    """Return a name of this machine since it was started; containers on it have names of their own."""
    boot = namespace = ""
    with suppress(OSError):  # not on Linux
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid")
    return f"{socket.gethostname()} {boot} {namespace}".strip()


def _start_time(pid: int) -> str:
    """Return when a process started, in ticks since the machine did; nothing if the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # the name in parentheses may hold anything
    return "ended" if fields[0] == "Z" else fields[19]  # Z: ended, and its parent has not asked how
