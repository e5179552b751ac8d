"""Stored texts: what reading in memory gives, for every format; the cache of them."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from regard.corpora import blocks, texts
from regard.corpora.blocks import skipped_report
from regard.corpora.cache import Cache
from regard.corpora.texts import StoredTexts, drop_repeated
from regard.text.pairs import Corpus, Pair, read_pairs
from tests.corpora.stored import lines, stored, written


def pairs(some: StoredTexts) -> list[Pair]:
    return [some.pair(row) for row in range(len(some)) if not some.repeated[row]]


def check_same(some: StoredTexts, corpus: Corpus) -> None:
    assert pairs(some) == corpus.pairs
    assert some.line_count == corpus.lines and some.name == corpus.name
    others = {reason: [len(each), *each[:5]] for reason, each in corpus.skipped.items() if reason != "exact duplicate"}
    assert some.skipped == others
    repeated = [int(line) for line in some.lines[some.repeated == 1]]
    assert repeated == corpus.skipped.get("exact duplicate", [])
    assert some.characters[some.repeated == 0].tolist() == [max(len(p.source), len(p.target)) for p in corpus.pairs]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_table_is_read_as_in_memory(reverse: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_LINES", 70)
    file = written(tmp_path / "pairs.tsv")
    check_same(stored(file, reverse=reverse), read_pairs([file], reverse))


def test_other_formats_are_read_as_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_LINES", 90)
    rows = [line.split("\t") for line in lines(400)]
    packed = tmp_path / "pairs.tsv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + "\r\n".join(lines(400)).encode() + b"\n\xff\tx\n"))
    check_same(stored(packed), read_pairs([packed]))
    sides = [tmp_path / "x.en", tmp_path / "x.mr"]
    for number, side in enumerate(sides):
        side.write_text("\n".join([*row, "", ""][number] for row in rows), encoding="utf-8")
    check_same(stored(*sides), read_pairs(sides))
    objects = [{"source": row[0]} if len(row) < 2 else {"source": row[0], "target": row[1]} for row in rows]
    objects[7:9] = [{"translation": {"mr": "दोन", "en": "two"}}, {"translation": {"en": "one", "mr": "एक", "x": ""}}]
    table = tmp_path / "pairs.jsonl"
    table.write_text("\n".join([*map(json.dumps, objects), "{", "3", '{"translation": {"en": "e", "mr": "m"}}']))
    check_same(stored(table), read_pairs([table]))
    check_same(stored(table, languages=("en", "mr")), read_pairs([table], languages=("en", "mr")))


def test_errors_are_those_of_reading_in_memory(tmp_path: Path) -> None:
    one, other = tmp_path / "x.en", tmp_path / "x.mr"
    one.write_text("a\nb\n"), other.write_text("a\n")
    damaged = tmp_path / "damaged.tsv.gz"
    damaged.write_bytes(gzip.compress("\n".join(lines(900)).encode())[:-20])
    (tmp_path / "none.tsv").write_text("one column\n\n")
    for files in ([one, other], [damaged], [tmp_path / "none.tsv"], [tmp_path / "nowhere"], [one, other, one]):
        with pytest.raises(ValueError, match=r".") as expected:
            read_pairs(files)
        with pytest.raises(ValueError, match=r".") as error:
            stored(*files, cache=Cache(tmp_path / "cache"))
        assert str(error.value).replace("1 lines", "1 line") == str(expected.value).replace("1 lines", "1 line")
    assert not list((tmp_path / "cache").glob("*"))  # nothing is left behind


def test_the_cache_is_used_again_until_the_data_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "pairs.tsv")
    first = stored(file)
    with monkeypatch.context() as patch:
        patch.setattr(texts, "_write_texts", None)
        os.utime(file, (1, 1))
        assert stored(file).folder == first.folder
    with file.open("a", encoding="utf-8") as more:
        more.write("\na new one\tएक\n")
    changed = stored(file)
    assert changed.folder != first.folder and len(changed) == len(first) + 1
    assert stored(file, reverse=True).folder not in (changed.folder, first.folder)
    assert len(list((tmp_path / ".regard-cache").iterdir())) == 3


def test_a_damaged_entry_is_named(tmp_path: Path) -> None:
    file = written(tmp_path / "pairs.tsv")
    entry = stored(file).folder
    (entry / "keys").write_bytes(b"")
    with pytest.raises(ValueError, match=rf"{entry}: damaged; delete it"):
        stored(file)
    (entry / "manifest.json").unlink()  # then it is not there, and made again
    assert len(stored(file)) > 0


KILLED = """
import sys
from pathlib import Path
from regard.corpora import blocks
from tests.corpora.stored import stored

blocks.BLOCK_LINES = 20
real = blocks.SourceFiles.blocks
def slow(self):
    import time
    for number, block in enumerate(real(self)):
        if number == 12:
            print("now", flush=True)
            time.sleep(60)
        yield block
blocks.SourceFiles.blocks = slow
stored(Path(sys.argv[1]))
"""


def test_a_killed_run_leaves_nothing_that_counts(tmp_path: Path) -> None:
    file, cache = written(tmp_path / "pairs.tsv"), tmp_path / ".regard-cache"
    run = subprocess.Popen([sys.executable, "-c", KILLED, str(file)], stdout=subprocess.PIPE, start_new_session=True)
    assert run.stdout is not None and run.stdout.readline() == b"now\n"
    (unfinished,) = cache.iterdir()
    assert unfinished.name.startswith("unfinished-")
    children = _children(run.pid)
    assert children
    with pytest.raises(BlockingIOError):  # it still runs: others leave it alone
        _take_lock(unfinished)
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    some = stored(file)
    check_same(some, read_pairs([file]))
    assert [entry.name for entry in cache.iterdir()] == [some.folder.name]
    deadline = time.monotonic() + 10
    while any(_runs(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_runs(pid) for pid in children)  # workers end with the run that started them


def _take_lock(folder: Path) -> None:
    import fcntl

    with (folder / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


def test_keys_that_occur_again_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "BUCKET_ROWS", 16)
    rng = np.random.default_rng(1)
    keys = [rng.integers(0, 60, size, dtype=np.uint64) << np.uint64(58) for size in (100, 50)]
    dropped = [np.zeros(len(each), np.uint8) for each in keys]
    dropped[0][:10] = 1
    drop_repeated(keys, dropped)
    seen: set[int] = set()
    for part, (some, flags) in enumerate(zip(keys, dropped, strict=True)):
        for row, key in enumerate(some.tolist()):
            known = key in seen or (part == 0 and row < 10)
            assert flags[row] == known
            if not (part == 0 and row < 10):
                seen.add(key)


def test_the_report_counts_lines() -> None:
    assert skipped_report({"empty line": [7, 1, 2, 3, 4, 5], "no tab: 1 column": [1, 9]}) == [
        "7 lines skipped, empty line: 1, 2, 3, 4, 5, …",
        "1 line skipped, no tab: 1 column: 9",
    ]


def test_a_disk_that_is_too_small_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"needs about [\d.]+ GB there, and [\d.]+ GB are free"):
        Cache(tmp_path / "cache").check_space(10**18)


def test_a_saved_dataset_is_read_as_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(blocks, "BLOCK_RECORDS", 90)
    rows = [line.split("\t") for line in lines(400)]
    translations = [{"en": row[0], "mr": (row[1:] or [None])[0]} for row in rows]
    datasets.Dataset.from_dict({"translation": translations}).save_to_disk(tmp_path / "saved")
    check_same(stored(tmp_path / "saved"), read_pairs([tmp_path / "saved"]))
