"""The work of one process, in this one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from regard.batch import work
from regard.batch.claims import MAX_ATTEMPTS, Claim, Claims
from regard.batch.cutting import Cutter
from regard.batch.folder import GROUP, ShardFolder
from regard.batch.join import joined_texts
from regard.batch.manifest import Manifest
from regard.batch.translation import load_translator
from regard.batch.work import ShardQueue, Shift
from regard.tasks.translation.predictor import Translator
from tests.batch.lines import LINES, OPTIONS, SHARD_LINES, begun, expected, no_claims

SHARDS = -(-len(LINES) // SHARD_LINES)


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return load_translator([model], "cpu", OPTIONS)


@pytest.fixture
def cut(tmp_path: Path, file: Path, model: Path) -> tuple[ShardFolder, Manifest]:
    folder, manifest = begun(tmp_path / "shards", file, model)
    Cutter(folder, file, manifest.shard_lines).run()
    return folder, manifest


def queue(folder: ShardFolder) -> ShardQueue:
    def never() -> None:
        raise AssertionError("nothing to wait for")

    return ShardQueue(folder, Claims(folder.claims), never)


def worked_off(folder: ShardFolder, manifest: Manifest, translator: Translator) -> list[int]:
    shift, done = Shift(folder, manifest, translator), []
    for shard, claim in queue(folder):
        if shift.translate(shard, claim) is not None:
            done.append(shard)
    return done


def test_all_shards_then_none(cut: tuple[ShardFolder, Manifest], translator: Translator, model: Path) -> None:
    folder, manifest = cut
    assert worked_off(folder, manifest, translator) == list(range(SHARDS))
    assert b"".join(joined_texts(folder)).decode() == expected(model)
    assert worked_off(folder, manifest, translator) == [] and no_claims(folder.root)
    (notices,) = (folder.root / "notices").rglob("*.tsv")
    first, second = notices.read_text().splitlines()
    assert first.startswith("83\tlonger than anything") and "5 parts" in first and second.startswith("84\t")


def test_only_what_is_missing_is_done(cut: tuple[ShardFolder, Manifest], translator: Translator, model: Path) -> None:
    folder, manifest = cut
    worked_off(folder, manifest, translator)
    for shard in (0, 5):
        folder.target(shard).unlink()
    assert worked_off(folder, manifest, translator) == [0, 5]
    assert b"".join(joined_texts(folder)).decode() == expected(model)


def test_shards_of_others_are_waited_for(cut: tuple[ShardFolder, Manifest]) -> None:
    folder, _ = cut
    other = Claims(folder.claims).take("0000/0000003")
    assert isinstance(other, Claim)
    waits: list[int] = []

    def wait() -> None:
        waits.append(1)
        if len(waits) == 2:  # the other process finishes
            folder.write_target(3, ["x"], [])
            other.finish()

    seen = []
    for shard, claim in ShardQueue(folder, Claims(folder.claims), wait):
        seen.append(shard)
        folder.write_target(shard, ["x"], [])
        claim.finish()
    assert seen == [shard for shard in range(SHARDS) if shard != 3] and len(waits) == 2


def test_work_begins_before_the_input_is_cut(tmp_path: Path, file: Path, model: Path, translator: Translator) -> None:
    folder, manifest = begun(tmp_path / "shards", file, model)
    cutter = Cutter(folder, file, manifest.shard_lines)
    shift = Shift(folder, manifest, translator)
    for shard, claim in ShardQueue(folder, Claims(folder.claims), lambda: (cutter.step(), None)[1]):
        if shard == 0:
            assert not folder.has_source(1)
        shift.translate(shard, claim)
    assert b"".join(joined_texts(folder)).decode() == expected(model)


def test_a_shard_that_fails_thrice_is_given_up(
    cut: tuple[ShardFolder, Manifest], translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, manifest = cut
    calls, translate = [], work.translate_lines

    def failing(translator: Translator, lines: list[str], options: object, shard: int) -> object:
        calls.append(shard)
        if shard == 2:
            raise RuntimeError("out of luck")
        return translate(translator, lines, options, shard)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "translate_lines", failing)
    shift = Shift(folder, manifest, translator)
    for shard, claim in ShardQueue(folder, Claims(folder.claims), lambda: None):
        shift.translate(shard, claim)
    assert calls.count(2) == MAX_ATTEMPTS and len(calls) == SHARDS - 1 + MAX_ATTEMPTS
    assert folder.failures() == {2: "RuntimeError: out of luck"}
    with pytest.raises(ValueError, match=f"1 of {SHARDS} shards is missing"):
        joined_texts(folder)


def test_a_full_disk_and_an_interrupt_give_the_shard_back(
    cut: tuple[ShardFolder, Manifest], translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, manifest = cut
    for error in (OSError(28, os.strerror(28), "target"), KeyboardInterrupt()):

        def fail(*_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr(ShardFolder, "write_target", fail)
        with pytest.raises(type(error)):
            worked_off(folder, manifest, translator)
        assert no_claims(folder.root) and not folder.is_done(0)


def test_release_from_another_thread(cut: tuple[ShardFolder, Manifest], translator: Translator) -> None:
    folder, manifest = cut
    shift = Shift(folder, manifest, translator)
    started, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        started.set()
        go_on.wait()

    folder_write, ShardFolder.write_target = ShardFolder.write_target, slow  # type: ignore[assignment, method-assign]
    try:
        claim = Claims(folder.claims).take("0000/0000000")
        assert isinstance(claim, Claim)
        thread = threading.Thread(target=shift.translate, args=(0, claim))
        thread.start()
        started.wait()
        shift.release()
        assert no_claims(folder.root)
        go_on.set()
        thread.join()
        shift.release()
    finally:
        ShardFolder.write_target = folder_write  # type: ignore[method-assign]


def test_complete_groups_are_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ShardFolder(tmp_path)
    full = set(range(GROUP))
    listed: list[int] = []
    monkeypatch.setattr(
        ShardFolder, "cut_in_group", lambda self, group: listed.append(group) or [full, {GROUP}, set()][group]
    )
    monkeypatch.setattr(ShardFolder, "done_in_group", lambda self, group: full if group == 0 else set())
    again = queue(folder)
    assert list(again.missing()) == [GROUP] and list(again.missing()) == [GROUP]
    assert listed == [0, 1, 2, 1, 2]
