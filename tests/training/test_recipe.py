"""Recipes: read, set, fitted, written."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any, Literal

import pytest

from regard.training.recipe import RECIPES, Recipe, from_toml, read_recipe, to_toml
from regard.training.setup import set_up
from tests.training import toy

SECTIONS = [item.name for item in dataclasses.fields(Recipe) if item.name != "name"]


def every_key() -> list[tuple[str, Any]]:
    """("training.epochs", its type), … of the whole tree."""
    return [
        (f"{section}.{key}", kind)
        for section in SECTIONS
        for key, kind in typing.get_type_hints(type(getattr(Recipe(), section))).items()
    ]


def value_at(recipe: Recipe, key: str) -> Any:
    section, name = key.split(".")
    return getattr(getattr(recipe, section), name)


def another(recipe: Recipe, key: str, kind: Any) -> Any:
    """A value that is allowed there and is not the one that stands there."""
    if typing.get_origin(kind) is Literal:
        return next(choice for choice in typing.get_args(kind) if choice != value_at(recipe, key))
    kind = next((option for option in typing.get_args(kind) if option is not type(None)), kind)
    return {int: 3, float: 0.25, bool: not value_at(recipe, key), str: "window(3)"}[kind]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_comes_back_from_toml(name: str) -> None:
    assert from_toml(to_toml(RECIPES[name])) == RECIPES[name]


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_fitted_leaves_nothing_open_and_comes_back(name: str) -> None:
    settings = {"model.embedding": 8, "model.encoder": 4, "model.decoder": 8, "model.attention": 8}
    if name == "article":
        settings["vocabulary.size"] = 50  # words: None keeps all, which is not open
    recipe = set_up(toy.pairs(64), toy.pairs()[64:], read_recipe(name, settings), 1).recipe
    given = RECIPES[name].training.batch_sentences
    left_open = {key for key, _ in every_key() if value_at(recipe, key) is None}
    assert left_open == (set() if given else {"training.batch_sentences"})  # as many as fit into batch_tokens
    assert from_toml(to_toml(recipe)) == recipe
    assert set_up(toy.pairs(64), toy.pairs()[64:], recipe, 1).recipe == recipe


@pytest.mark.parametrize("name", RECIPES)
def test_every_value_can_be_set_and_survives_toml(name: str) -> None:
    for key, kind in every_key():
        value = another(RECIPES[name], key, kind)
        recipe = read_recipe(name, {key: value})
        assert value_at(recipe, key) == value
        assert type(value_at(recipe, key)) is type(value)
        assert from_toml(to_toml(recipe)) == recipe
        as_text = str(value).lower() if isinstance(value, bool) else str(value)
        assert read_recipe(name, {key: as_text}) == recipe, "as the command line gives it"


def test_text_is_written_as_toml_reads_it() -> None:
    recipe = read_recipe("rnn", {"name": 'a "quoted" \\ name, नाव'})
    assert from_toml(to_toml(recipe)) == recipe


def test_a_file_names_what_differs_from_its_base(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "article"\nname = "mine"\n[training]\nepochs = 7\nlearning_rate = 1\n', encoding="utf-8")
    recipe = read_recipe(file, {"model.encoder": 5})
    assert recipe.name == "mine" and recipe.training.epochs == 7 and recipe.model.encoder == 5
    assert recipe.training.learning_rate == 1.0 and recipe.vocabulary == RECIPES["article"].vocabulary


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("training.epoch", "training.epochs"),
        ("training.learningrate", "training.learning_rate"),
        ("model.embeding", "model.embedding"),
        ("epochs", "training.epochs"),
        ("trainin.epochs", "training.epochs"),
        ("vocabulary.sise", "vocabulary.size"),
    ],
)
def test_an_unknown_key_names_the_nearest(key: str, near: str) -> None:
    with pytest.raises(ValueError, match="unknown key") as error:
        read_recipe("rnn", {key: 1})
    assert repr(key) in str(error.value) and repr(near) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("training.epochs", "many"),
        ("training.epochs", 1.5),
        ("training.epochs", "1.5"),
        ("training.epochs", True),
        ("training.epochs", -1),
        ("training.epochs", [1]),
        ("training.epochs", None),
        ("training.epochs", {}),
        ("training.learning_rate", "fast"),
        ("training.learning_rate", float("nan")),
        ("training.learning_rate", "inf"),
        ("training.learning_rate", False),
        ("training.learning_rate", -0.1),
        ("model.bidirectional", "perhaps"),
        ("model.bidirectional", 2),
        ("model.cell", "rnn"),
        ("model.cell", 3),
        ("model.cell", ["gru"]),
        ("training.decay", "linear"),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence_that_names_the_key(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match="expected") as error:
        read_recipe("rnn", {key: value})
    assert str(error.value).startswith(f"recipe: {key}: expected ") and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.embedding", 0),
        ("model.encoder", 0),
        ("model.decoder", 0),
        ("model.attention", 0),
        ("model.encoder_layers", 0),
        ("model.decoder_layers", 0),
        ("model.dropout", 1.5),
        ("model.dropout", 1),
        ("model.pattern", "windw(3)"),
        ("training.label_smoothing", 1.5),
        ("training.average", 1.5),
        ("training.scheduled_sampling", 2),
        ("training.segmentation_dropout", 2),
        ("training.lower_case", 2),
        ("training.no_stop", 2),
        ("search.beam", 0),
    ],
)
def test_a_value_out_of_its_range_is_refused_before_training(key: str, value: Any) -> None:
    """When the recipe is read, or when the model is built: in words, and not after hours of training."""
    with pytest.raises(ValueError, match=r"expected|needs|unknown|must") as error:
        set_up(toy.pairs(20), toy.pairs(5), read_recipe("rnn", toy.TINY | {key: value}), 1)
    assert "\n" not in str(error.value) and key.split(".")[1].split("_")[0] in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "[training\n",
        "training = 5\n",
        "[training]\nepochs = {a = 1}\n",
        "[other]\nkey = 1\n",
        'base = "none"\n',
        "base = [1]\n",
        "[training]\nepochs = 2024-01-01\n",
    ],
)
def test_a_damaged_file_is_one_clear_error(text: str) -> None:
    with pytest.raises(ValueError, match="recipe") as error:
        from_toml(text)
    assert "\n" not in str(error.value)


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"recipe: expected rnn, article or a \.toml file, got 'artcle'; did you mean"):
        read_recipe("artcle")


def test_both_sides_share_a_vocabulary_if_they_share_their_letters() -> None:
    settings = toy.TINY | {"vocabulary.size": 50}
    apart = set_up(toy.pairs(20), toy.pairs(5), read_recipe("rnn", settings), 1)
    assert not apart.recipe.vocabulary.joint and not apart.vocabularies.joint
    alike = [dataclasses.replace(pair, target=pair.source.replace("The", "Le")) for pair in toy.pairs(20)]
    together = set_up(alike, alike, read_recipe("rnn", settings), 1)
    assert together.recipe.vocabulary.joint and together.vocabularies.joint
