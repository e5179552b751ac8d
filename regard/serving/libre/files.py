"""Translated files that wait to be downloaded, in memory, for a limited time."""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from typing import NamedTuple

from regard.serving.errors import RequestError

MAX_NAME = 100  # characters of a file's name
_UNSAFE = re.compile(r"[^\w.-]+")


class TranslatedFile(NamedTuple):
    """A file, and until when it waits."""

    name: str
    content: bytes
    until: float


class DownloadStore:
    """Translated files by names that cannot be guessed. If they are too large together, the oldest go first."""

    def __init__(self, max_bytes: int, seconds: float) -> None:
        self._max_bytes, self._seconds = max_bytes, seconds
        self._files: OrderedDict[str, TranslatedFile] = OrderedDict()

    def add(self, name: str, content: bytes) -> str:
        """Store a file, and return the name by which it can be downloaded."""
        self.remove_old()
        safe = _UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2])[-MAX_NAME:].lstrip(".") or "file"
        address = f"{secrets.token_urlsafe(16)}.{safe}"
        self._files[address] = TranslatedFile(safe, content, time.monotonic() + self._seconds)
        while len(self._files) > 1 and sum(len(each.content) for each in self._files.values()) > self._max_bytes:
            self._files.popitem(last=False)
        return address

    def get(self, address: str) -> TranslatedFile:
        """Return a file; raise a RequestError if there is none."""
        self.remove_old()
        if address not in self._files:
            raise RequestError(404, "filename: there is no such file, or it waited too long")
        return self._files[address]

    def remove_old(self) -> None:
        """Remove the files that have waited too long."""
        now = time.monotonic()
        while self._files and next(iter(self._files.values())).until < now:
            self._files.popitem(last=False)
