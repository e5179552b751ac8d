"""A model's folder: what is written is read, and what is damaged is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

import regard
from regard.config import folder as folders
from regard.config.folder import Vocabularies
from regard.config.recipe import RECIPES
from regard.config.recipe_text import to_toml
from regard.runtime.tensor_file import open_tensors
from regard.text.vocabulary import learn_subwords, learn_words
from tests.training import toy

TEXTS = [text for pair in toy.PAIRS for text in pair]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("folder") / "model"
    regard.train(toy.PAIRS, out, settings=toy.TINY | {"training.epochs": 1}, device="cpu")
    return out


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(trained, tmp_path / "model"))


def refused(model: Path) -> str:
    """The one line that loading it gives."""
    with pytest.raises(ValueError, match=r".") as error:
        regard.load(model, "cpu")
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("version", [1, 3])
def test_another_format_is_refused_by_name(model: Path, version: int) -> None:
    card = json.loads((model / "card.json").read_text(encoding="utf-8"))
    (model / "card.json").write_text(json.dumps(card | {"format": version}), encoding="utf-8")
    message = refused(model)
    assert f"format {version}" in message and "reads format 2 alone" in message and str(model) in message


@pytest.mark.parametrize("missing", ["card.json", "recipe.toml", "source.json", "target.json", "model.safetensors"])
def test_a_missing_file_is_named(missing: str, model: Path) -> None:
    (model / missing).unlink()
    assert missing in refused(model)


@pytest.mark.parametrize("file", ["card.json", "recipe.toml", "source.json", "target.json", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe\x00nonsense", b"null", b'"text"', b"3"])
def test_a_damaged_file_is_named(file: str, content: bytes, model: Path) -> None:
    (model / file).write_bytes(content)
    printed = refused(model)
    # A recipe of nothing is the default one: then it is the weights that do not fit.
    assert file in printed or (file == "recipe.toml" and content == b"" and "weights" in printed)


@pytest.mark.parametrize("file", ["card.json", "recipe.toml", "source.json", "target.json", "model.safetensors"])
@pytest.mark.parametrize("part", [2, 3, 4])
def test_a_part_of_a_file_is_named(file: str, part: int, model: Path) -> None:
    whole = (model / file).read_bytes()
    (model / file).write_bytes(whole[: len(whole) // part])
    printed = refused(model)
    assert file in printed or "weights" in printed


@pytest.mark.parametrize(
    ("change", "printed"),
    [
        ({"format": "1"}, "format: expected a whole number from 1 on, got '1'"),
        ({"format": True}, "got True"),
        ({"format": 1.5}, "got 1.5"),
        ({"task": ["translate"]}, "task: expected its name, got ['translate']"),
    ],
)
def test_a_card_with_a_wrong_format_or_task_is_damaged(tmp_path: Path, change: dict[str, object], printed: str) -> None:
    folders.write_card(tmp_path, {"task": "translate"} | change)
    with pytest.raises(ValueError, match="damaged") as raised:
        folders.read_card(tmp_path)
    assert printed in str(raised.value) and "card.json" in str(raised.value)


def test_an_unknown_task_is_named(model: Path) -> None:
    card = json.loads((model / "card.json").read_text(encoding="utf-8"))
    (model / "card.json").write_text(json.dumps(card | {"task": "cook"}), encoding="utf-8")
    assert "card.json: damaged: task: expected translate or classify or images or captions, got 'cook'" in refused(
        model
    )


@pytest.mark.parametrize("key", ["format", "length", "longest_source"])
@pytest.mark.parametrize("value", [None, "x", {}, [3]])
def test_a_card_without_what_is_needed_is_named(key: str, value: object, model: Path) -> None:
    card = json.loads((model / "card.json").read_text(encoding="utf-8"))
    card = {name: each for name, each in card.items() if name != key} if value is None else card | {key: value}
    (model / "card.json").write_text(json.dumps(card), encoding="utf-8")
    assert "card.json" in refused(model)


def test_weights_that_do_not_fit_the_recipe_are_named(model: Path) -> None:
    text = (model / "recipe.toml").read_text(encoding="utf-8")
    (model / "recipe.toml").write_text(text.replace("encoder = 8", "encoder = 9"), encoding="utf-8")
    assert "weights" in refused(model) and "expected" in refused(model)
    (model / "recipe.toml").write_text(text.replace("encoder_layers = 1", "encoder_layers = 2"), encoding="utf-8")
    assert "weights" in refused(model)


@pytest.mark.parametrize("what", ["nothing", "file", "other folder"])
def test_what_is_no_model_is_said_to_be_none(what: str, tmp_path: Path) -> None:
    path = tmp_path / "m"
    if what == "file":
        path.write_text("x")
    elif what == "other folder":
        path.mkdir()
    assert str(path) in refused(path) and "model" in refused(path)


def test_one_vocabulary_or_two(tmp_path: Path) -> None:
    both, words = learn_subwords(TEXTS, 100), learn_words(TEXTS)
    for name, given in (("joint", Vocabularies(both, both)), ("apart", Vocabularies(both, words))):
        (tmp_path / name).mkdir()
        folders.write_vocabularies(tmp_path / name, given)
        result = folders.read_vocabularies(tmp_path / name)
        assert result.joint == given.joint == (name == "joint")
        for ours, theirs in ((result.source, given.source), (result.target, given.target)):
            assert ours.words == theirs.words and len(ours) == len(theirs)
            assert ours.encode_all(TEXTS) == theirs.encode_all(TEXTS)
    assert [file.name for file in (tmp_path / "joint").iterdir()] == ["tokenizer.json"]
    assert sorted(file.name for file in (tmp_path / "apart").iterdir()) == ["source.json", "target.json"]


def test_recipe_card_and_weights_come_back(tmp_path: Path) -> None:
    weights = {"a": torch.randn(3, 4), "b": torch.randn(2, 2).mT, "c": torch.tensor(1.5, dtype=torch.bfloat16)}
    folders.write_tensors(tmp_path / folders.WEIGHTS, weights)
    with open_tensors(tmp_path / folders.WEIGHTS) as file:
        result = file.read_all()
    assert result.keys() == weights.keys() and all(result[name].equal(weights[name]) for name in weights)
    folders.write(tmp_path / folders.RECIPE, to_toml(RECIPES["article"]))
    assert folders.read_recipe(tmp_path) == RECIPES["article"]
    card = {"task": "translate", "languages": ["en", "mr"], "name": "मराठी"}
    folders.write_card(tmp_path, card)
    assert folders.read_card(tmp_path) == {"format": 2, **card}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["card.json", "model.safetensors", "recipe.toml"]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "card.json"
    folders.write(file, "old")
    with file.open("rb") as reader:
        folders.write(file, b"new, and longer than the old one")
        assert reader.read() == b"old", "whoever had it open reads the old one to its end"
    assert file.read_bytes() == b"new, and longer than the old one"
    assert [each.name for each in tmp_path.iterdir()] == ["card.json"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "card.json"
    folders.write(file, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        folders.write(file, "new")
    assert file.read_text() == "old"


def test_no_pickle_is_read_or_written(trained: Path) -> None:
    for file in trained.rglob("*"):
        assert file.is_dir() or file.suffix in (".json", ".jsonl", ".toml", ".safetensors")


def test_what_a_killed_write_left_does_no_harm(model: Path) -> None:
    (model / "model.safetensors.new").write_bytes(b"half")
    (model / "card.json.new").write_bytes(b"half")
    regard.load(model, "cpu").translate("Sita sees a mango.")
