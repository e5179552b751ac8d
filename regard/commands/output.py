"""Where a command writes: a file that appears as a whole, or standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO


class Output:
    """The output file, which appears as a whole when all is done, or standard output."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._beside = None if path is None else path.with_name(path.name + ".new")

    def __enter__(self) -> TextIO:
        if self._beside is None:
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
            return sys.stdout
        if not self._beside.parent.is_dir():
            raise ValueError(f"{self._path}: expected a folder to write into, and there is no {self._beside.parent}")
        self._file = self._beside.open("w", encoding="utf-8", newline="\n")
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._beside is None:
            return
        self._file.close()
        if kind is None:
            assert self._path is not None
            self._beside.replace(self._path)
        else:
            self._beside.unlink()
