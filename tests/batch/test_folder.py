"""The folder of a sharded translation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regard.batch.folder import GROUP, CutSize, ShardFolder, Tally, put, shard_name


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    lines = ["a", "", "\ufeffb", "c\r", "\u2028", "x\x85y", " ", "राहुल"]
    folder = ShardFolder(tmp_path)
    folder.write_source(1234, lines)
    assert folder.read_source(1234) == lines
    assert folder.has_source(1234) and not folder.has_source(234)
    assert folder.cut_in_group(1) == {1234} and folder.cut_in_group(0) == set()


def test_a_target_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ShardFolder(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            folder.write_target(0, ["a"], [])
    assert not folder.is_done(0) and not [path for path in tmp_path.rglob("*") if path.is_file()]
    folder.write_target(0, ["a", ""], [(1, "long")])
    assert folder.is_done(0) and folder.target(0).read_bytes() == b"a\n\n"
    assert folder.notices(0).read_text() == "1\tlong\n"


def test_leftovers_of_killed_processes_are_no_targets(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path)
    leftover = folder.target(3).with_name("0000003.txt.abc.new")
    put(leftover, b"half")
    assert folder.done_in_group(0) == set() and not folder.is_done(3)
    folder.remove_leftovers(3)
    assert not leftover.exists()


def test_failures_are_listed_and_forgotten(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path)
    assert folder.failures() == {}
    folder.write_failure(1001, "it is cursed")
    folder.write_failure(2, "so is this")
    put(folder.claims / f"{shard_name(2)}.3", b"")
    assert folder.failures() == {2: "so is this", 1001: "it is cursed"} and folder.has_ended(2)
    folder.forget_failures()
    assert folder.failures() == {} and not folder.has_ended(2) and not list(folder.claims.glob("*/*"))


def test_the_tally_lists_complete_groups_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, tally = ShardFolder(tmp_path), Tally(ShardFolder(tmp_path))
    assert tally.done() == 0 and folder.cut_size() is None
    for shard in (0, GROUP, 2 * GROUP):
        folder.write_source(shard, ["x"])
    targets = [folder.target(shard) for shard in range(GROUP)]
    targets[0].parent.mkdir(parents=True)
    for target in targets:
        target.touch()
    folder.write_target(GROUP, ["x"], [])
    assert tally.done() == GROUP + 1
    listed: list[int] = []
    monkeypatch.setattr(ShardFolder, "done_in_group", lambda self, group: listed.append(group) or {1})
    assert tally.done() == GROUP + 2 and listed == [1, 2]


def test_sizes(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path)
    folder.write_cut_size(CutSize(3, 50))
    assert folder.cut_size() == CutSize(3, 50)
