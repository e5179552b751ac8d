"""One training at a time in a folder, also between processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.tasks.train import train
from regard.training import lock as locks
from regard.training.lock import locked
from regard.training.progress import Silent
from tests.training import toy

HOLDS = """
import sys, time
from pathlib import Path
from regard.training.lock import locked
from regard.training.progress import Silent
with locked(Path(sys.argv[1]), Silent()):
    print("locked", flush=True)
    time.sleep(100)
"""


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


def test_a_second_training_is_refused_in_one_line(tmp_path: Path) -> None:
    with locked(tmp_path / "m", Silent()), pytest.raises(ValueError, match="another training is running") as error:
        train(toy.PAIRS, tmp_path / "m", settings=toy.TINY, device="cpu")
    assert f"process {os.getpid()} on " in str(error.value) and "\n" not in str(error.value)
    assert files(tmp_path) == []


def test_another_folder_beside_it_is_not_locked(tmp_path: Path) -> None:
    with locked(tmp_path / "m", Silent()), locked(tmp_path / "n", Silent()):
        assert files(tmp_path) == [".m.lock", ".n.lock"]


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path / "m")], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
        with pytest.raises(ValueError, match=f"process {holder.pid} on "), locked(tmp_path / "m", Silent()):
            pass
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    assert files(tmp_path) == [".m.lock"]
    with locked(tmp_path / "m", Silent()):
        pass
    assert files(tmp_path) == []


def test_a_lock_file_that_is_removed_while_another_process_opens_it_locks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its opening and its locking the holder ends: the file that is locked must be the one that others see."""
    real, path = locks._lock_now, tmp_path / ".m.lock"
    removed = []

    def late(descriptor: int) -> None:
        if not removed:
            path.unlink()
            removed.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(locks, "_lock_now", late)
    with locked(tmp_path / "m", Silent()):
        assert path.read_text().startswith(f"process {os.getpid()} ")
        with pytest.raises(ValueError, match="another training"), locked(tmp_path / "m", Silent()):
            pass


def test_a_file_system_without_locks_is_told_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(descriptor: int) -> None:
        raise OSError(locks.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks, "_lock_now", none)
    screen = toy.Watcher()
    with locked(tmp_path / "m", screen):
        assert "has no locks" in screen.text
    assert files(tmp_path) == []


def test_an_out_that_cannot_be_written_is_refused_before_data_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file" / "m", tmp_path / "file" / "folder" / "m"):
        with pytest.raises(ValueError, match=r"m: expected a folder to make it in, and \S+file is a file"):
            train(tmp_path / "nowhere.tsv", out)
    (tmp_path / ".m.lock").mkdir()
    with pytest.raises(ValueError, match="m: cannot be written"):
        train(tmp_path / "nowhere.tsv", tmp_path / "m")


def test_folders_above_are_removed_again_if_nothing_comes_of_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere\.tsv"):
        train(tmp_path / "nowhere.tsv", tmp_path / "a" / "b" / "m")
    assert files(tmp_path) == []


def test_a_running_training_is_neither_replaced_nor_resumed_by_a_second_one(tmp_path: Path) -> None:
    """And ends as if it had been alone."""
    data, out = toy.write_tsv(tmp_path / "pairs.tsv"), tmp_path / "m"
    settings = [part for key, value in toy.TINY.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "regard", "train", str(data), "--out", str(out), "--device", "cpu", *settings]
    first = subprocess.Popen([*command, "--threads", "1"], stderr=subprocess.PIPE, text=True)
    began = time.monotonic()
    while not out.exists():
        time.sleep(0.01)
        assert first.poll() is None and time.monotonic() - began < 100
    first.send_signal(signal.SIGSTOP)  # so that it is still there when the second one comes
    try:
        for how in ("overwrite", "resume"):
            with pytest.raises(ValueError, match=rf"another training is running there \(process {first.pid} on"):
                train(data, out, settings=toy.TINY, device="cpu", **{how: True})  # type: ignore[arg-type]
    finally:
        first.send_signal(signal.SIGCONT)
    _, message = first.communicate(timeout=100)
    assert first.returncode == 0, message
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m", "pairs.tsv"]
