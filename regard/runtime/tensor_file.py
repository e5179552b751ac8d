"""Tensors in a file of the format safetensors, whose header is checked before anything is allocated.

    8 bytes    the length of the header, little-endian
    header     JSON: {name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …, "__metadata__": {…}}
    data       the tensors, one after the other

The file is read, not mapped into memory: if somebody truncates a mapped file, its reader is killed by SIGBUS.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from regard.runtime.reading import open_inside

MAX_HEADER, MAX_TENSORS, MAX_DIMS = 1 << 25, 100_000, 8
METADATA = "__metadata__"
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
}


@dataclass(frozen=True)
class TensorEntry:
    """What the header says of one tensor."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int  # bytes after the header
    end: int


@dataclass(frozen=True)
class TensorFile:
    """An open file of tensors."""

    path: Path
    entries: Mapping[str, TensorEntry]
    metadata: Mapping[str, str]
    _file: BinaryIO
    _start: int  # where the data begin

    def read(self, name: str) -> Tensor:
        """Return a tensor, read from the file."""
        entry = self.entries[name]
        tensor = torch.empty(entry.shape, dtype=entry.dtype, device="cpu")
        if tensor.numel():
            self._file.seek(self._start + entry.begin)
            buffer: Any = memoryview(tensor.view(-1).view(torch.uint8).numpy())  # type: ignore[arg-type]
            if self._file.readinto(buffer) != len(buffer):  # type: ignore[attr-defined]
                raise damaged(self.path, "it ends before its last tensor; it was truncated while it was read")
        return tensor

    def read_all(self) -> dict[str, Tensor]:
        """Return all tensors by name."""
        return {name: self.read(name) for name in self.entries}


@contextmanager
def open_tensors(path: Path) -> Iterator[TensorFile]:
    """Open a file of tensors; raise a ValueError if its header does not fit its size, and if there is no file a
    FileNotFoundError."""
    with open_inside(path) as file:
        size = file.seek(0, 2)
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or not 2 <= length <= min(MAX_HEADER, size - 8):
            raise damaged(path, f"expected a header of tensors at its start, which fits in its {size:,} bytes")
        try:
            tree = json.loads(file.read(length))
        except (ValueError, RecursionError):
            raise damaged(path, "expected a header of tensors as JSON") from None
        metadata, entries = _header(path, tree, size - 8 - length)
        yield TensorFile(path, entries, metadata, file, 8 + length)


def _header(path: Path, tree: Any, data: int) -> tuple[dict[str, str], dict[str, TensorEntry]]:
    """Return the metadata and the entries of a header, which must cover `data` bytes without gaps."""
    if not isinstance(tree, dict) or len(tree) > MAX_TENSORS:
        raise damaged(path, f"expected a header with at most {MAX_TENSORS:,} tensors")
    metadata = tree.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise damaged(path, f"expected texts in {METADATA}")
    entries = {name: _entry(path, name, given) for name, given in tree.items()}
    position = 0
    for entry in sorted(entries.values(), key=lambda each: (each.begin, each.end)):
        if entry.begin != position:
            raise damaged(path, f"expected tensors one after the other, and there is none at byte {position:,}")
        position = entry.end
    if position != data:
        raise damaged(path, f"expected {position:,} bytes of tensors by its header, got {data:,}")
    return metadata, entries


def _entry(path: Path, name: str, given: Any) -> TensorEntry:
    """Return the entry of one tensor, whose shape must fit its number of bytes."""
    try:
        dtype, shape, (begin, end) = given["dtype"], given["shape"], given["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise damaged(path, f"{name!r}: expected dtype, shape and data_offsets") from None
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise damaged(path, f"{name!r}: expected a dtype of {', '.join(DTYPES)}, got {str(dtype)[:20]!r}")
    whole = isinstance(shape, list) and all(type(each) is int and each >= 0 for each in (*shape, begin, end))
    if not whole or len(shape) > MAX_DIMS or math.prod(shape) * DTYPES[dtype].itemsize != end - begin:
        raise damaged(path, f"{name!r}: expected a shape that fits its {dtype} bytes")
    return TensorEntry(DTYPES[dtype], tuple(shape), begin, end)


def damaged(path: Path, reason: str) -> ValueError:
    """Return the error of a file whose content is wrong."""
    return ValueError(f"{path}: damaged: {reason}")
