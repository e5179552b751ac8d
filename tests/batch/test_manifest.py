"""The manifest: what every process that works in a folder must have in common."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from regard.batch import manifest as manifests
from regard.batch.folder import MANIFEST, ShardFolder
from regard.batch.manifest import Manifest, check_input, check_models, describe_input, open_folder, read_manifest
from regard.text.glossary import Entry
from tests.batch.lines import OPTIONS, begun


def test_the_same_again_is_accepted(tmp_path: Path, file: Path, model: Path) -> None:
    folder, manifest = begun(tmp_path / "shards", file, model)
    assert begun(tmp_path / "shards", file, model)[1] == read_manifest(folder) == manifest
    other_size = Manifest.of(file, [model], OPTIONS, 7)
    assert open_folder(folder.root, other_size, keep_shard_lines=True)[1] == manifest
    moved = tmp_path / "elsewhere.txt"
    shutil.copy(file, moved)  # the same content under another name
    assert begun(folder.root, moved, model)[1] == manifest
    assert sorted(path.name for path in folder.root.iterdir()) == [MANIFEST]
    options = replace(OPTIONS, glossary=(Entry("boy", ("मुलगा", "मुलाने")),), keep=("names", "re:a,b"))
    other, manifest = begun(tmp_path / "other", file, model, options)
    assert read_manifest(other).options == manifest.options == options


def test_anything_else_is_refused(tmp_path: Path, file: Path, model: Path) -> None:
    folder, _ = begun(tmp_path / "shards", file, model)
    other = tmp_path / "other.txt"
    other.write_text("x\n")
    changed = tmp_path / "model"
    shutil.copytree(model, changed)
    weights = changed / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    with pytest.raises(ValueError, match=r"begun with another input \(lines.txt, .* bytes\); expected the same"):
        begun(folder.root, other, model)
    with pytest.raises(ValueError, match="begun with another model"):
        begun(folder.root, file, changed)
    for options, message in (
        (replace(OPTIONS, search=replace(OPTIONS.search, beam=4)), "beam 3; now 4"),
        (replace(OPTIONS, as_json=True), "as_json False; now True"),
        (replace(OPTIONS, keep=("numbers",)), "keep"),
        (replace(OPTIONS, precision="bf16"), "precision"),
    ):
        with pytest.raises(ValueError, match=f"begun with other options .*{message}"):
            begun(folder.root, file, model, options)
    with pytest.raises(ValueError, match=r"begun with another glossary \(0 terms\)"):
        begun(folder.root, file, model, replace(OPTIONS, glossary=(Entry("boy", ("मुलगा",)),)))
    with pytest.raises(ValueError, match="shard_lines 20; now 7"):
        open_folder(folder.root, Manifest.of(file, [model], OPTIONS, 7), keep_shard_lines=False)
    with pytest.raises(ValueError, match="another model"):
        check_models(folder, [changed])
    with pytest.raises(ValueError, match="another input"):
        check_input(folder, other)
    check_models(folder, [model])
    check_input(folder, file)


def test_folders_of_other_things_are_refused(tmp_path: Path, file: Path, model: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    with pytest.raises(ValueError, match=r"it has 'mine\.txt'"):
        begun(tmp_path / "notes", file, model)
    with pytest.raises(ValueError, match="expected a folder for the shards, got a file"):
        begun(file, file, model)
    with pytest.raises(ValueError, match=r"it has no manifest\.json"):
        read_manifest(ShardFolder(tmp_path / "notes"))
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}', '{"format": 9}'])
def test_a_damaged_manifest_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(ValueError, match=r"damaged|format 9"):
        read_manifest(ShardFolder(tmp_path))


def test_of_two_that_begin_at_once_one_wins(
    tmp_path: Path, file: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = manifests._write_new

    def later(path: Path, content: bytes) -> None:
        """Another process writes its manifest in between."""
        monkeypatch.setattr(manifests, "_write_new", write)
        begun(path.parent, file, model, replace(OPTIONS, as_json=True))
        write(path, content)

    monkeypatch.setattr(manifests, "_write_new", later)
    with pytest.raises(ValueError, match="as_json True; now False"):
        begun(tmp_path / "shards", file, model)


def test_large_files_are_sampled(tmp_path: Path) -> None:
    path = tmp_path / "large"
    content = bytearray(8 << 20)
    path.write_bytes(content)
    hashes = {describe_input(path)["sha256"]}
    for place in (0, len(content) // 2, len(content) - 1):
        changed = content[:]
        changed[place] = 1
        path.write_bytes(changed)
        hashes.add(describe_input(path)["sha256"])
    assert len(hashes) >= 3  # the first and the last byte are always read
    with pytest.raises(ValueError, match="got a pipe or device"):
        describe_input(Path("/dev/null"))
