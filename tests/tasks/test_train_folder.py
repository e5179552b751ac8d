"""train(): the model's folder, and what is never touched."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

import regard
from tests.tasks.small import small
from tests.training import toy


def test_a_folder_that_is_there_is_refused(model: Path) -> None:
    before = toy.weights(model)
    with pytest.raises(ValueError, match="there already; expected --resume, to go on, or --overwrite"):
        small(model, seed=2)
    with pytest.raises(ValueError, match="contradict"):
        small(model, resume=True, overwrite=True)
    assert toy.differing(toy.weights(model), before) == []


@pytest.mark.parametrize("how", [{}, {"overwrite": True}, {"resume": True}])
@pytest.mark.parametrize("kind", ["folder", "empty folder", "file"])
def test_what_is_no_model_is_never_touched(how: dict[str, bool], kind: str, tmp_path: Path) -> None:
    out = tmp_path / "thesis"
    if kind == "file":
        out.write_text("mine")
    else:
        out.mkdir()
        if kind == "folder":
            (out / "chapter.txt").write_text("mine")
    before = sorted((str(file), file.is_dir() or file.read_text()) for file in tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="thesis") as error:
        small(out, **how)
    assert "\n" not in str(error.value)
    assert before == sorted((str(file), file.is_dir() or file.read_text()) for file in tmp_path.rglob("*"))


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_neighbour_with_new_at_its_end_is_never_touched(overwrite: bool, tmp_path: Path) -> None:
    """The folder is built beside --out: not in one that somebody else has there."""
    (tmp_path / "model.new").mkdir()
    (tmp_path / "model.new" / "chapter.txt").write_text("mine")
    if overwrite:
        small(tmp_path / "other", settings={"training.epochs": 1})
        (tmp_path / "other").rename(tmp_path / "model")
    with suppress(ValueError):  # to refuse would do
        small(tmp_path / "model", settings={"training.epochs": 1}, overwrite=overwrite)
    assert (tmp_path / "model.new" / "chapter.txt").read_text() == "mine"
    with pytest.raises(ValueError, match=r"model\.new: in the way"):  # before data is read
        small(tmp_path / "model", tmp_path / "nowhere.tsv", overwrite=overwrite)


@pytest.mark.parametrize("how", [{}, {"overwrite": True}])
def test_a_file_in_place_of_the_folder_is_not_offered_to_be_overwritten(how: dict[str, bool], tmp_path: Path) -> None:
    (tmp_path / "m").write_text("mine")
    with pytest.raises(ValueError, match="m: expected a folder for the model, got a file") as error:
        small(tmp_path / "m", tmp_path / "nowhere.tsv", **how)
    assert "--overwrite" not in str(error.value)


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_folder_that_could_not_be_made_leaves_nothing_behind(
    overwrite: bool, error: type[BaseException], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if overwrite:
        shutil.copytree(model, tmp_path / "m")
    before = sorted(str(file) for file in tmp_path.rglob("*"))
    real = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path.name.endswith(".new"):  # the last step, when an old model is already out of the way
            raise error
        return real(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(error):
        small(tmp_path / "m", overwrite=overwrite)
    assert sorted(str(file) for file in tmp_path.rglob("*")) == before


def test_a_link_that_leads_to_itself_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ValueError, match="loop: expected a file or folder, got a symbolic link that leads back"):
        regard.train(toy.PAIRS, tmp_path / "loop", device="cpu")
    assert [file.name for file in tmp_path.iterdir()] == ["loop"]


def test_overwrite_begins_anew(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    small(out, seed=5, settings={"training.epochs": 1})
    (out / "stale.txt").write_text("of the old model")
    small(out, overwrite=True)
    assert toy.differing(toy.weights(out), toy.weights(model)) == []
    assert not (out / "stale.txt").exists()
    assert [entry["kind"] for entry in toy.log(out)].count("plan") == 1


def test_data_that_cannot_be_read_leaves_the_old_model(tmp_path: Path) -> None:
    out = tmp_path / "m"
    small(out, settings={"training.epochs": 1})
    before = toy.weights(out)
    with pytest.raises(ValueError, match=r"nowhere\.tsv"):
        small(out, tmp_path / "nowhere.tsv", overwrite=True)
    with pytest.raises(ValueError, match="pattern"):
        small(out, overwrite=True, settings={"model.pattern": "windw(3)"})
    assert toy.differing(toy.weights(out), before) == []
    assert [file.name for file in tmp_path.iterdir()] == ["m"]
