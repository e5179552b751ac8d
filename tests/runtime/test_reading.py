"""Files of a stranger's folder: what is no regular file of the folder is refused, and nobody waits for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from regard.runtime.reading import check_links, open_inside, read_bytes_inside, read_text_inside

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and links are those of POSIX")


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("मराठी", encoding="utf-8")
    assert read_text_inside(tmp_path / "a", 100) == "मराठी"
    (tmp_path / "b").symlink_to("a")
    assert read_text_inside(tmp_path / "b", 100) == "मराठी", "a link inside of the folder"
    with pytest.raises(FileNotFoundError):
        read_bytes_inside(tmp_path / "c", 100)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)  # a file of holes, which takes no room on the disk
    with pytest.raises(ValueError, match="at most 1,000 bytes"):
        read_bytes_inside(tmp_path / "a", 1000)


@pytest.mark.parametrize("kind", ["pipe", "folder", "zeros", "outside", "loop"])
def test_anything_else_is_refused_without_waiting(kind: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "card.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"zeros": "/dev/zero", "outside": "../secret", "loop": "card.json"}[kind])
    with pytest.raises((ValueError, OSError)) as error, open_inside(path):
        pass
    assert "card.json" in str(error.value) and "secret" not in str(error.value).replace(str(tmp_path / "secret"), "")


def test_a_folder_to_be_written_has_no_links_out_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "training").mkdir(parents=True)
    (folder / "log.jsonl").symlink_to("training")
    check_links(folder)
    (folder / "training" / "last.safetensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"last\.safetensors: a symbolic link out of its folder"):
        check_links(folder)
