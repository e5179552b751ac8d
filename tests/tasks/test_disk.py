"""A training on a full disk, in a folder that may not be written or whose files change: a sentence, nothing lost."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.config import folder as folders
from regard.training import checkpoint
from tests.commands.run import SETTINGS, Inside, refused
from tests.tasks.small import small, usable
from tests.training import toy

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and permissions are those of POSIX")
LONGER = {"training.epochs": 6, "training.validations": 6}


def full_disk(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let the disk be full from the `after`-th file on that is written."""
    written = 0
    real = os.fsync

    def fsync(descriptor: int) -> None:
        nonlocal written
        written += 1
        if written > after:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(folders.os, "fsync", fsync)


@pytest.mark.parametrize("after", [6, 7, 8, 9, 11])
def test_a_disk_that_gets_full_keeps_the_last_checkpoint(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = small(tmp_path / "whole", settings=LONGER)
    with monkeypatch.context() as patch:
        full_disk(patch, after)
        with pytest.raises(ValueError, match=r"cannot be written: No space left on device.*--resume") as error:
            small(tmp_path / "m", settings=LONGER)
    assert "\n" not in str(error.value) and str(tmp_path / "m") in str(error.value)
    assert not list(tmp_path.rglob("*.new")), "what was half written is deleted: it takes room"
    resumed = small(tmp_path / "m", settings=LONGER, resume=True)
    assert toy.differing(toy.weights(tmp_path / "m"), toy.weights(tmp_path / "whole")) == []
    assert resumed.card["scores"] == whole.card["scores"]


def test_a_disk_that_is_full_from_the_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_disk(monkeypatch, 2)
    with pytest.raises(OSError, match="No space left on device"):
        small(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_limit_of_the_file_size_as_a_user_meets_it(tmp_path: Path) -> None:
    """The real error of the operating system, in a process of its own: the log reaches the limit first."""
    data = toy.write_tsv(tmp_path / "pairs.tsv")
    given = [str(data), "--out", str(tmp_path / "m"), *SETTINGS, "--set", "training.epochs=40", "--threads", "1"]
    command = [sys.executable, "-m", "regard", "train", *given, "--set", "training.validations=40", "--device", "cpu"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limit, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "cannot be written: File too large" in done.stderr.splitlines()[-1]
    done = subprocess.run([*command, "--resume", "--quiet"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    usable(tmp_path / "m")


def test_a_small_file_system(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mounted = shutil.which("mount") and not os.geteuid()
    if (
        not mounted
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", place], check=False).returncode
    ):
        pytest.skip("no file system can be mounted here")
    try:
        with pytest.raises((ValueError, OSError), match="No space left on device"):
            small(place / "m", settings=LONGER | {"training.epochs": 60, "training.validations": 60})
        if (place / "m").exists():
            subprocess.run(["mount", "-o", "remount,size=50m", place], check=True)
            small(place / "m", settings=LONGER | {"training.epochs": 60, "training.validations": 60}, resume=True)
            usable(place / "m")
    finally:
        subprocess.run(["umount", place], check=True)


def test_results_on_a_full_device(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(
        Inside(monkeypatch, capsys)("translate", model, "Sita sees a mango.", "-o", "/dev/full", "--threads", "1")
    )
    assert "No space left on device" in said


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    small(tmp_path / "m")
    (tmp_path / "m").chmod(0o500)
    with pytest.raises(ValueError, match="cannot be written: Permission denied"):
        small(tmp_path / "m", resume=True)
    regard.load(tmp_path / "m", "cpu").translate("Sita sees a mango.")


def test_a_folder_that_is_read_only_from_now_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    screen = toy.Watcher(interrupt_on="update 2")
    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "m", screen=screen)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        with pytest.raises(ValueError, match=r"(last|model)\.safetensors: cannot be written: Read-only file system"):
            small(tmp_path / "m", resume=True)
    usable(tmp_path / "m") if (tmp_path / "m/model.safetensors").exists() else None
    small(tmp_path / "m", resume=True)
    usable(tmp_path / "m")


@pytest.mark.parametrize("size", [0, 7, 1000, -1])
def test_a_truncated_checkpoint_is_named_and_the_model_stays(size: int, tmp_path: Path) -> None:
    small(tmp_path / "m", settings=LONGER)
    file = tmp_path / "m" / "training" / checkpoint.FILE
    os.truncate(file, size if size >= 0 else file.stat().st_size - 1)
    with pytest.raises(ValueError, match=r"last\.safetensors: damaged: .*--overwrite begins anew"):
        small(tmp_path / "m", settings=LONGER, resume=True)
    usable(tmp_path / "m")


def test_a_corpus_that_changes_under_a_training_is_told_at_resume(tmp_path: Path) -> None:
    data = toy.write_tsv(tmp_path / "pairs.tsv")

    class Changes(toy.Watcher):
        def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
            os.truncate(data, 1000)
            super().advance(done, total, text, unit)

    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "m", data, screen=Changes(interrupt_at=3))
    with pytest.raises(ValueError, match="begun with other data"):
        small(tmp_path / "m", data, resume=True)
    toy.write_tsv(data)
    small(tmp_path / "m", data, resume=True)
    small(tmp_path / "whole", data)
    assert toy.differing(toy.weights(tmp_path / "m"), toy.weights(tmp_path / "whole")) == []


def test_a_folder_that_disappears_under_a_training(tmp_path: Path) -> None:
    class Deletes(toy.Watcher):
        def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
            shutil.rmtree(tmp_path / "m", ignore_errors=True)

    with pytest.raises(ValueError, match="cannot be written: No such file or directory") as error:
        small(tmp_path / "m", screen=Deletes())
    assert "--resume" not in str(error.value)


def test_a_card_that_is_damaged_under_a_training(tmp_path: Path) -> None:
    class Damages(toy.Watcher):
        def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
            (tmp_path / "m/card.json").write_text("{")

    with pytest.raises(ValueError, match=r"card\.json: damaged"):
        small(tmp_path / "m", screen=Damages())


def test_a_link_out_of_the_folder_is_not_written(tmp_path: Path) -> None:
    """A folder from a stranger: resuming would append to the log, wherever that leads."""
    mine = tmp_path / "mine"
    mine.write_text("mine")
    small(tmp_path / "m")
    for name in ("log.jsonl", "training/last.safetensors", "model.safetensors"):
        stranger = tmp_path / name.replace("/", "-")
        shutil.copytree(tmp_path / "m", stranger)
        (stranger / name).unlink()
        (stranger / name).symlink_to(mine)
        with pytest.raises(ValueError, match="a symbolic link out of its folder"):
            small(stranger, resume=True)
        assert mine.read_text() == "mine"
    (tmp_path / "m/card.json.new").symlink_to(mine)
    card = folders.read_card(tmp_path / "m")
    folders.write_card(tmp_path / "m", card)
    assert mine.read_text() == "mine" and not (tmp_path / "m/card.json.new").exists()
    assert json.loads((tmp_path / "m/card.json").read_text(encoding="utf-8")) == card
