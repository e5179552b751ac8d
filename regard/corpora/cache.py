"""The cache of corpora: a folder beside the model, which may be deleted at any time.

    .regard-cache/
      texts-KEY/          the pairs of one source of data, tidied; KEY is a hash of its files and of how they were read
      vocabulary-KEY/     the vocabularies, learned from a sample of the texts
      tokens-KEY/         the token ids of one `texts` with one vocabulary

An entry is made under another name, and renamed when it is complete: what stands there under its name is whole. What a
killed run left behind is deleted by the next one.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FOLDER = ".regard-cache"
FORMAT = 1  # of the entries; those of another format have other keys
MANIFEST = "manifest.json"
UNFINISHED = "unfinished-"
LOCK = "lock"


class Cache:
    """The entries of one cache folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def beside(cls, model: Path) -> Cache:
        """Return the cache beside a model's folder."""
        return cls(model.absolute().parent / FOLDER)

    def entry(self, kind: str, *parts: object) -> Path:
        """Return the folder of an entry; `parts` are what it depends on."""
        text = json.dumps([FORMAT, kind, *parts], default=str)
        return self.folder / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"

    def has(self, entry: Path) -> bool:
        """Return whether the entry is there."""
        return (entry / MANIFEST).is_file()

    @contextmanager
    def building(self, entry: Path) -> Iterator[Path]:
        """Give a folder in which to make an entry, and put it in its place if no error occurs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._delete_leftovers()
        unfinished = self.folder / f"{UNFINISHED}{entry.name}-{secrets.token_hex(4)}"
        unfinished.mkdir()
        with (unfinished / LOCK).open("wb") as lock:
            _lock(lock)
            try:
                yield unfinished
                if entry.exists() and not self.has(entry):
                    shutil.rmtree(entry)  # somebody deleted a part of it
                with suppress(OSError):  # another run made the same in the meantime
                    unfinished.rename(entry)
                    (entry / LOCK).unlink()
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)

    def _delete_leftovers(self) -> None:
        """Delete what runs that are gone left unfinished: its lock is free."""
        for folder in self.folder.glob(f"{UNFINISHED}*"):
            if fcntl is None:
                continue
            try:
                with (folder / LOCK).open("rb") as lock:
                    _lock(lock)
                    shutil.rmtree(folder, ignore_errors=True)
            except OSError:  # a run holds it, or has just put it in its place
                continue

    def check_space(self, needed: int) -> None:
        """Raise a ValueError if so many bytes do not fit on the disk."""
        existing = next(folder for folder in (self.folder, *self.folder.parents) if folder.exists())
        free = shutil.disk_usage(existing).free
        if free < needed:
            sizes = f"needs about {needed / 1e9:.1f} GB there, and {free / 1e9:.1f} GB are free"
            raise ValueError(f"{self.folder}: a corpus of this size {sizes}")


def write_manifest(folder: Path, facts: dict[str, Any]) -> None:
    """Write what is known of an entry: the last of its files."""
    (folder / MANIFEST).write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_manifest(entry: Path) -> dict[str, Any]:
    """Return what is known of an entry."""
    try:
        return dict(json.loads((entry / MANIFEST).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise ValueError(f"{entry}: damaged; delete it, and it will be made again") from None


def digest_of(files: Sequence[Path]) -> str:
    """Return the SHA-256, in hex, of the files: of the digest of each."""
    return hashlib.sha256("".join(_file_digest(file) for file in files).encode()).hexdigest()


def _file_digest(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror or error}") from None


def _lock(file: IO[bytes]) -> None:
    """Lock a file for this process; raise an OSError if another one has locked it."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
