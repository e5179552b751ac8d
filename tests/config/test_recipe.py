"""Recipes: read, set, fitted, written."""

from __future__ import annotations

import dataclasses
import functools
import re
import typing
from pathlib import Path
from typing import Any, Literal

import pytest

from regard.config.recipe import RECIPES, Recipe
from regard.config.recipe_text import default_translation_recipe, from_toml, read_recipe, to_toml
from regard.tasks.translation.task import TranslationTask
from tests.training import toy

SMALL = {
    "rnn": {"model.embedding": 8, "model.encoder": 4, "model.decoder": 8, "model.attention": 8},
    "transformer": {"model.width": 8, "model.heads": 2, "model.feedforward": 8, "encoder.kv_heads": 1},
}


def every_key(part: Any, above: str = "") -> list[tuple[str, Any]]:
    """("training.epochs", its type), … of the whole tree."""
    result = []
    for key, kind in typing.get_type_hints(type(part)).items():
        if dataclasses.is_dataclass(getattr(part, key)):
            result += every_key(getattr(part, key), f"{above}{key}.")
        elif key not in ("name", "kind"):
            result.append((above + key, kind))
    return result


def value_at(recipe: Recipe, key: str) -> Any:
    return functools.reduce(getattr, key.split("."), recipe)


def another(recipe: Recipe, key: str, kind: Any) -> Any:
    """A value that is allowed there and is not the one that stands there."""
    if typing.get_origin(kind) is Literal:
        return next(choice for choice in typing.get_args(kind) if choice != value_at(recipe, key))
    if key == "model.readout":  # as wide as the embedding, which is the output layer
        return value_at(recipe, "model.embedding")
    kind = next((option for option in typing.get_args(kind) if option is not type(None)), kind)
    texts = {"model.states": "rnn + attention + tfidf", "model.member_weights": "0.5 + 0.25 + 1.0"}
    text = texts.get(key, "window(3)")
    # The heads divide the features, and the heads of keys those of queries.
    last = key.rpartition(".")[2]
    sizes = {"width": 8, "heads": 2, "kv_heads": 1, "image_height": 8, "image_width": 8, "patch": 2}
    number = sizes.get(last, 3)
    return {int: number, float: 0.25, bool: not value_at(recipe, key), str: text}[kind]


def test_a_shorter_way_to_say_where_a_transformer_looks() -> None:
    text = "per_head(window(8), window(8), strided(4), full)"
    recipe = read_recipe("transformer", {"encoder.pattern": text})
    assert recipe == read_recipe("transformer", {"model.encoder.pattern": text})
    assert value_at(recipe, "model.encoder.pattern") == text
    with pytest.raises(ValueError, match=r"unknown key 'encoder\.pattern'"):
        read_recipe("rnn", {"encoder.pattern": text})


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("transformer", {"model.heads": 3}, "recipe: model: heads: expected a divisor of dim = 256, got 3"),
        ("transformer", {"encoder.pattern": "per_head(full, causal)"}, "expected one for each of 4 heads, got 2"),
        ("transformer", {"cross.kv_heads": 3}, "kv_heads: expected a divisor of heads = 4, got 3"),
        ("transformer", {"model.width": 12, "model.positions": "rotary"}, "an even number of features a head"),
        ("classify", {"model.states": "attention", "model.heads": 7}, "heads: expected a divisor"),
        ("rnn", {"model.pattern": "per_head(full, causal)"}, "model.pattern: expected one pattern"),
        ("rnn", {"search.length_penalty": 101}, "search.length_penalty: expected a number from 0 to 100"),
    ],
)
def test_options_that_do_not_fit_together_are_refused_at_once(
    name: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read_recipe(name, settings)


def test_options_are_checked_together_not_one_by_one() -> None:
    for settings in ({"model.heads": 3, "model.width": 96}, {"model.width": 96, "model.heads": 3}):
        assert read_recipe("transformer", settings).model.heads == 3


def test_with_no_recipe_an_error_comes_from_the_one_that_knows_the_keys() -> None:
    with pytest.raises(ValueError, match="heads: expected a divisor"):
        default_translation_recipe({"model.heads": 3})
    with pytest.raises(ValueError, match="unknown key"):
        default_translation_recipe({"model.hads": 3})


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot read"), (b"name = '\xff'", "UTF-8"), (b"[", "not TOML")]
)
def test_a_recipe_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "mine.toml").write_bytes(content)
    with pytest.raises(ValueError, match=message) as raised:
        read_recipe(tmp_path / "mine.toml")
    assert "mine.toml" in str(raised.value)


def test_with_no_recipe_the_settings_may_decide() -> None:
    assert default_translation_recipe({"model.cell": "lstm"}).model.kind == "rnn"
    assert default_translation_recipe({"model.norm": "post"}).model.kind == "transformer"
    assert default_translation_recipe({"model.cell": "lstm"}, "transformer").model.kind == "rnn"
    assert default_translation_recipe({"model.dropout": 0.2}, "transformer").model.kind == "transformer"
    with pytest.raises(ValueError, match=r"unknown key 'model\.cel'"):
        default_translation_recipe({"model.cel": "lstm"})


def test_the_kind_of_model_decides_what_can_be_set() -> None:
    recipe = read_recipe("rnn", {"model.kind": "transformer", "model.heads": 2})
    assert recipe.model.kind == "transformer" and value_at(recipe, "model.heads") == 2
    assert from_toml('[model]\nheads = 2\nkind = "transformer"\n') == recipe
    with pytest.raises(ValueError, match=r"model\.kind: expected 'rnn' or 'transformer'"):
        read_recipe("rnn", {"model.kind": "transfomer"})


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_comes_back_from_toml(name: str) -> None:
    assert from_toml(to_toml(RECIPES[name])) == RECIPES[name]


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].model.kind in SMALL])
def test_what_is_fitted_leaves_nothing_open_and_comes_back(name: str) -> None:
    settings: dict[str, Any] = dict(SMALL[RECIPES[name].model.kind])
    if name == "article":
        settings["vocabulary.size"] = 50  # words: None keeps all, which is not open
    recipe = TranslationTask.of(toy.pairs(64), toy.pairs()[64:], read_recipe(name, settings), 1).recipe
    given = RECIPES[name].training.batch_sentences
    left_open = {key for key, _ in every_key(recipe) if value_at(recipe, key) is None}
    left_open = {key for key in left_open if not key.endswith("kv_heads")}  # None: as many as heads
    left_open -= {"search.beam", "search.length_penalty"}  # chosen on dev when training ends
    left_open -= {"training.max_characters"}  # `train` knows it when it has read the data
    left_open -= {"training.epochs"}  # None: as many as dev improves
    assert left_open == (set() if given else {"training.batch_sentences"})  # as many as fit into batch_tokens
    assert from_toml(to_toml(recipe)) == recipe
    assert TranslationTask.of(toy.pairs(64), toy.pairs()[64:], recipe, 1).recipe == recipe


@pytest.mark.parametrize("name", RECIPES)
def test_every_value_can_be_set_and_survives_toml(name: str) -> None:
    for key, kind in every_key(RECIPES[name]):
        value = another(RECIPES[name], key, kind)
        # A captioner's decoder is as wide as its images are.
        widths = {f"model.{part}.width": value for part in ("image", "decoder")}
        settings = widths if key in widths else {key: value}
        recipe = read_recipe(name, settings)
        assert value_at(recipe, key) == value
        assert type(value_at(recipe, key)) is type(value)
        assert from_toml(to_toml(recipe)) == recipe
        as_text = str(value).lower() if isinstance(value, bool) else str(value)
        assert read_recipe(name, settings | {key: as_text}) == recipe, "as the command line gives it"


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
        ("training.no_punctuation", 1),
        ("training.word_pairs", -0.1),
        ("search.beam", 0),
    ],
)
def test_a_value_out_of_its_range_is_refused_before_training(key: str, value: Any) -> None:
    """When the recipe is read, or when the model is built: in words, and not after hours of training."""
    with pytest.raises(ValueError, match=r"expected|needs|unknown|must") as error:
        TranslationTask.of(toy.pairs(20), toy.pairs(5), read_recipe("rnn", toy.TINY | {key: value}), 1)
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
    with pytest.raises(ValueError, match=r"recipe: expected rnn, .* or a \.toml file, got 'artcle'; did you mean"):
        read_recipe("artcle")


def test_both_sides_share_a_vocabulary_if_they_share_their_letters() -> None:
    settings = toy.TINY | {"vocabulary.size": 50}
    apart = TranslationTask.of(toy.pairs(20), toy.pairs(5), read_recipe("rnn", settings), 1)
    assert not apart.recipe.vocabulary.joint and not apart.vocabularies.joint
    alike = [dataclasses.replace(pair, target=pair.source.replace("The", "Le")) for pair in toy.pairs(20)]
    together = TranslationTask.of(alike, alike, read_recipe("rnn", settings), 1)
    assert together.recipe.vocabulary.joint and together.vocabularies.joint


def test_sources_that_show_terms_can_spell_them() -> None:
    settings = toy.TINY | {"vocabulary.size": 300, "training.glossary": True}
    together = TranslationTask.of(toy.pairs(20), toy.pairs(5), read_recipe("rnn", settings), 1)
    assert together.vocabularies.joint and together.vocabularies.source.has_term_marks
    recipe = read_recipe("rnn", settings | {"vocabulary.joint": False})
    apart = TranslationTask.of(toy.pairs(20), toy.pairs(5), recipe, 1).vocabularies
    assert not apart.joint and apart.source.has_term_marks and not apart.target.has_term_marks
    word = toy.pairs(1)[0].target.split()[0]
    assert len(apart.source.encode(word)) <= len(word), "no bytes"


@pytest.mark.parametrize(("value", "fraction"), [(True, 0.3), ("true", 0.3), (False, 0.0), ("0.1", 0.1), (0.2, 0.2)])
def test_terms_are_shown_in_a_fraction_of_the_pairs(value: Any, fraction: float) -> None:
    recipe = read_recipe("rnn", {"training.glossary": value})
    assert recipe.training.glossary == fraction and from_toml(to_toml(recipe)) == recipe
    with pytest.raises(ValueError, match=r"recipe: training.glossary: expected true or false or a number, got 'yes'"):
        read_recipe("rnn", {"training.glossary": "yes"})
