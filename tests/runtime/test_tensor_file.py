"""Files of tensors: what the library safetensors writes is read; a header that lies is refused, and costs no memory."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from regard.runtime.tensor_file import open_tensors

TENSORS = {
    "a": torch.randn(3, 4),
    "scalar": torch.tensor(2.5),
    "empty": torch.empty(0, 7),
    "half": torch.randn(5).bfloat16(),
    "bytes": torch.arange(9, dtype=torch.uint8),
    "long": torch.arange(4),
    "double": torch.randn(2, 2, dtype=torch.float64),
}


def test_what_safetensors_writes_is_read(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "t", {"progress": "x"})
    with open_tensors(tmp_path / "t") as file:
        read = file.read_all()
        assert file.metadata == {"progress": "x"}
    assert read.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert read[name].dtype is tensor.dtype and read[name].equal(tensor)


def written(path: Path, header: Any, data: bytes = b"\0" * 48, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(**changes: Any) -> dict[str, Any]:
    return {"a": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]} | changes}


def test_the_entry_itself_is_right(tmp_path: Path) -> None:
    with open_tensors(written(tmp_path / "t", entry())) as file:
        assert file.read("a").equal(torch.zeros(3, 4))


@pytest.mark.parametrize(
    "header",
    [
        entry(shape=[2**40, 2**40]),
        entry(shape=[-3, -4]),
        entry(shape=[3.0, 4.0]),
        entry(shape=[True, 12]),
        entry(shape=12),
        entry(shape=[1] * 40 + [12]),
        entry(shape=["3", 4]),
        entry(dtype="F64"),
        entry(dtype="PICKLE"),
        entry(dtype=None),
        entry(data_offsets=[0, 2**50]),
        entry(data_offsets=[-48, 0]),
        entry(data_offsets=[4, 52]),
        entry(data_offsets=[0]),
        entry(data_offsets="x"),
        entry() | {"b": entry()["a"]},
        entry() | {"b": {"dtype": "F32", "shape": [1], "data_offsets": [52, 56]}},
        {"a": 3},
        {},
        [],
        None,
        b"[" * 100_000,
        b"{",
        b"\xff\xfe",
        b'{"__metadata__": {"a": 1}}',
        b'{"__metadata__": []}',
        b'{"a": {"dtype": "F32", "shape": [' + b"9" * 5000 + b'], "data_offsets": [0, 48]}}',
    ],
)
def test_a_header_that_lies_is_refused(header: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"t: damaged: ") as error, open_tensors(written(tmp_path / "t", header)):
        pass
    assert "\n" not in str(error.value) and len(str(error.value)) < 500


@pytest.mark.parametrize("length", [0, 1, 2**24, 2**63, 2**64 - 1])
def test_a_length_that_lies_is_refused(length: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="damaged"), open_tensors(written(tmp_path / "t", entry(), length=length)):
        pass


@pytest.mark.parametrize("content", [b"", b"1234567", b"\0" * 8, b"\x80\x04K\x01."])
def test_a_short_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(ValueError, match="damaged"), open_tensors(tmp_path / "t"):
        pass


def test_a_file_truncated_while_it_is_read_is_an_error_and_no_signal(tmp_path: Path) -> None:
    """A reader that had mapped the file into memory would be killed by SIGBUS."""
    save_file({"a": torch.ones(1 << 20), "b": torch.ones(1 << 20)}, tmp_path / "t")
    with open_tensors(tmp_path / "t") as file:
        assert bool((file.read("a") == 1).all())
        os.truncate(tmp_path / "t", 1000)
        with pytest.raises(ValueError, match="truncated while it was read"):
            file.read("b")
