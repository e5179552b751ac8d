"""Files that users name: regular ones are replaced as a whole, all else is written into."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from regard.runtime.files import check_output, open_output, write_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    file.chmod(0o600)
    with open_output(file) as out:
        out.write(b"new")
        out.flush()
        assert file.read_text() == "old"
    assert file.read_text() == "new" and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert names(tmp_path) == ["a.txt"]


def test_a_new_file_has_the_mode_of_new_files(tmp_path: Path) -> None:
    write_file(tmp_path / "ours", "x")
    (tmp_path / "theirs").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    os.chown(file, 1234, 1234)
    write_file(file, "new")
    assert (file.stat().st_uid, file.stat().st_gid, file.read_text()) == (1234, 1234, "new")


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/target")
    for content in ("first", "second"):  # a target that is not there yet, then one that is
        write_file(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "target").read_text() == content
    assert names(tmp_path / "folder") == ["target"] and names(tmp_path) == ["folder", "link"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_all_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a.new").write_text("a file of the user")

    def fail(name: str) -> None:
        with open_output(tmp_path / name) as out:
            out.write(b"half")
            raise error

    for name in ("a", "b"):
        with pytest.raises(error):
            fail(name)
    assert names(tmp_path) == ["a", "a.new"]
    assert (tmp_path / "a").read_text() == "old" and (tmp_path / "a.new").read_text() == "a file of the user"


def test_a_device_is_written_into(tmp_path: Path) -> None:
    before = os.stat("/dev/null")
    write_file("/dev/null", "gone")
    after = os.stat("/dev/null")
    assert stat.S_ISCHR(after.st_mode) and (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)


def test_the_reader_of_a_fifo_gets_everything(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "through the pipe")
    reader.join(5)
    assert got == ["through the pipe"] and stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_goes_on_where_it_stands(tmp_path: Path, path: str) -> None:
    """Also where it is a file: what the shell wrote there before is not lost."""
    code = f"from regard.runtime.files import write_file; print('one'); write_file({path!r}, 'two\\n'); print('three')"
    with (tmp_path / "out").open("wb") as out:
        out.write(b"zero\n")
        out.flush()
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "zero\none\ntwo\nthree\n" and names(tmp_path) == ["out"]


@pytest.mark.parametrize("check", [check_output, lambda path: write_file(path, "x")])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("folder", "got a folder"),
        ("nowhere/a", "expected a folder to write into"),
        ("file/a", "cannot be written: Not a directory"),
        ("/proc/a", "/proc/a: cannot be written"),
        ("n" * 300, "cannot be written: File name too long"),
        ("loop", "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path: Path, check: object, name: str, why: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ValueError, match=why):
        check(tmp_path / name)  # type: ignore[operator]
    assert names(tmp_path) == ["file", "folder", "loop"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_file_that_is_read_only_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").touch(0o444)
    with pytest.raises(ValueError, match="Permission denied"):
        check_output(tmp_path / "a")


def test_a_file_in_a_folder_that_takes_no_new_ones_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old and long")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("regard.runtime.files._create_temporary", refuse)
    monkeypatch.setattr(os, "replace", refuse)
    write_file(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    with pytest.raises(ValueError, match="b: cannot be written: Permission denied"):
        write_file(tmp_path / "b", "new")
