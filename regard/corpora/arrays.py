"""Arrays in files: written once, from front to back, and then mapped into memory.

A mapped array takes no memory of the process by itself: the operating system reads pages as they are used, and drops
them when memory is short.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

Ints = NDArray[np.int64]
ROWS_AT_ONCE = 1 << 20  # rows that are processed at a time, which bounds the memory that they take


def mapped(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Return the array in a file, mapped for reading."""
    if path.stat().st_size == 0:  # which cannot be mapped
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(path, dtype, mode="r"))


def scratch(folder: Path, size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return a mapped array of zeros in a file that has no name, so that it is gone when the array is."""
    if size == 0:
        return np.zeros(0, dtype)
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.asarray(np.memmap(file, dtype, mode="w+", shape=(size,)))


def spans(size: int, step: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Yield consecutive slices of at most `step` that cover so many rows."""
    for first in range(0, size, step):
        yield slice(first, min(size, first + step))


@dataclass(frozen=True)
class Ragged:
    """Rows of any length, concatenated: row k is values[ends[k] : ends[k + 1]]."""

    values: NDArray[Any]
    ends: Ints  # [rows + 1], beginning with 0

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        return self.values[self.ends[row] : self.ends[row + 1]]

    def lengths(self, rows: Ints | slice) -> Ints:
        """Return the lengths of the rows."""
        if isinstance(rows, slice):
            return np.diff(self.ends[rows.start : rows.stop + 1])
        return np.asarray(self.ends[rows + 1] - self.ends[rows])

    @classmethod
    def open(cls, folder: Path, name: str, dtype: DTypeLike) -> Ragged:
        """Map the rows that a `RaggedWriter` wrote."""
        return cls(mapped(folder / name, dtype), mapped(folder / f"{name}.ends", np.int64))

    @classmethod
    def of(cls, rows: list[list[int]], dtype: DTypeLike) -> Ragged:
        """Return rows in memory."""
        ends = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        return cls(np.array([value for row in rows for value in row], dtype), ends.astype(np.int64))


class RaggedWriter:
    """Appends rows to the files of a `Ragged` array."""

    def __init__(self, folder: Path, name: str) -> None:
        self._values: BinaryIO = (folder / name).open("wb")
        self._ends: BinaryIO = (folder / f"{name}.ends").open("wb")
        self._ends.write(np.zeros(1, np.int64).tobytes())
        self.size = 0  # of all values

    def append(self, values: bytes | memoryview, lengths: Ints, item_bytes: int = 1) -> None:
        """Append rows: their values, concatenated, and the number of values of each."""
        self._values.write(values)
        self._ends.write((self.size + np.cumsum(lengths, dtype=np.int64)).tobytes())
        self.size += len(values) // item_bytes

    def close(self) -> None:
        self._values.close()
        self._ends.close()
