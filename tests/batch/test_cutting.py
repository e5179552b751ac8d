"""Cutting the input into shards."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from regard.batch.cutting import Cutter
from regard.batch.folder import CutSize, ShardFolder
from tests.batch.lines import no_claims

LINES = [f"line {number}" for number in range(25)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress("\r\n".join(LINES).encode()))
    return path


def cut_lines(folder: ShardFolder) -> list[str]:
    size = folder.cut_size()
    assert size is not None
    return [line for shard in range(size.shards) for line in folder.read_source(shard)]


def test_all_lines_in_order(file: Path, tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "shards")
    Cutter(folder, file, 10).run()
    assert folder.cut_size() == CutSize(3, 25) and cut_lines(folder) == LINES
    assert [len(folder.read_source(shard)) for shard in range(3)] == [10, 10, 5] and no_claims(folder.root)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    folder = ShardFolder(tmp_path / "shards")
    Cutter(folder, tmp_path / "empty", 10).run()
    assert folder.cut_size() == CutSize(0, 0)


def test_one_cuts_and_another_goes_on(file: Path, tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "shards")
    first, second = Cutter(folder, file, 10), Cutter(folder, file, 10)
    assert first.step() and not second.step() and folder.has_source(0) and not folder.has_source(1)
    first.close()
    written = (folder.root / "source/0000/0000000.gz").stat().st_mtime_ns
    second.run()
    assert cut_lines(folder) == LINES and not first.step()
    assert (folder.root / "source/0000/0000000.gz").stat().st_mtime_ns == written


def test_a_line_that_is_not_utf_8_is_an_error_and_leaves_no_claim(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"good\n" * 15 + b"\xff\n")
    folder = ShardFolder(tmp_path / "shards")
    with pytest.raises(ValueError, match="line 16 is not UTF-8"):
        Cutter(folder, tmp_path / "bad", 10).run()
    assert folder.cut_size() is None and no_claims(folder.root)
