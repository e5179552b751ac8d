"""Triton's compile cache, shared by the processes of a part without replacing a file that another one has loaded."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from triton.runtime.cache import FileCacheManager


class FirstWriterCache(FileCacheManager):  # type: ignore[misc]
    """Keeps the first file written under a name.

    Triton up to 3.6 builds a Python module for each kernel, and when several processes build the same one at once,
    each replaces the others' file. The interpreter recognizes loaded modules by their inodes: one that opened a file
    just before it was replaced later takes another module, on the freed inode, for it ("function takes exactly 34
    arguments (21 given)").
    """

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        path = Path(self._make_path(filename))
        if not path.exists():
            handle, temporary = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(data if isinstance(data, bytes) else str(data).encode())
            with suppress(FileExistsError):
                os.link(temporary, path)
            os.unlink(temporary)
        return str(path)
