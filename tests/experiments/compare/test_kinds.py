"""Which kinds are compared, and what they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.experiments.compare.kinds import ModelKind, chosen_kinds


def names(kinds: list[ModelKind]) -> list[str]:
    return [kind.name for kind in kinds]


def test_six_by_default() -> None:
    kinds = chosen_kinds()
    assert names(kinds) == [
        *("rnn additive", "rnn general", "rnn local"),
        *("transformer", "transformer windows", "transformer entmax15"),
    ]
    assert [getattr(kind.recipe.model, "score", None) for kind in kinds[:3]] == ["additive", "general", "general"]
    assert kinds[2].recipe.model.predictive == 10  # type: ignore[union-attr]
    windows, entmax = kinds[4].recipe.model, kinds[5].recipe.model
    assert windows.encoder.pattern == "window(4)" and windows.cross.pattern == "full"  # type: ignore[union-attr]
    assert entmax.encoder.normalizer == entmax.decoder.normalizer == "entmax15"  # type: ignore[union-attr]
    assert entmax.cross.normalizer == "entmax15"  # type: ignore[union-attr]
    assert len({kind.folder for kind in kinds}) == 6 and kinds[0].folder == "rnn-additive"


def test_a_variation_applies_to_each_recipe_that_has_the_key() -> None:
    kinds = chosen_kinds(None, ["model.score=cosine", "cross.normalizer=sparsemax", "training.label_smoothing=0"])
    assert names(kinds) == [
        *("rnn", "rnn score=cosine", "rnn training.label_smoothing=0"),
        *("transformer", "transformer cross.normalizer=sparsemax", "transformer training.label_smoothing=0"),
    ]


@pytest.mark.parametrize(
    "given",
    [
        "model.cell=lstm, model.pattern=longformer(8, 0, stride=2),training.clip=2",
        "model.cell=lstm model.pattern=longformer(8, 0, stride=2)  training.clip=2",
        {"model.cell": "lstm", "model.pattern": "longformer(8, 0, stride=2)", "training.clip": 2},
    ],
)
def test_several_settings_in_one_variation(given: str | dict[str, str]) -> None:
    """Commas and blanks inside of a pattern separate nothing."""
    _, kind = chosen_kinds(["rnn"], [given])
    assert kind.settings == {
        "model.cell": "lstm",
        "model.pattern": "longformer(8, 0, stride=2)",
        "training.clip": "2",
    }
    assert kind.recipe.training.clip == 2.0


def test_recipes_from_files(tmp_path: Path) -> None:
    for name in ("a/mine.toml", "b/mine.toml", "b/other.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("[model]\ndropout = 0.1\n")
    kinds = chosen_kinds([tmp_path / "a/mine.toml", tmp_path / "b/other.toml", "article", "article"])
    assert names(kinds) == ["mine", "other", "article"]
    both = chosen_kinds([tmp_path / "a/mine.toml", tmp_path / "b/mine.toml"])
    assert len({kind.folder for kind in both}) == 2 == len(set(names(both)))


def test_folders_of_odd_names_differ() -> None:
    kinds = chosen_kinds(["transformer"], ["encoder.pattern=window(1)", "encoder.pattern=window(1, 1)|full"])
    folders = [kind.folder for kind in kinds]
    assert len(set(folders)) == 3 and all(each.isascii() for each in folders)
    assert not any(sign in each for each in folders for sign in "/\\ ()|,")


@pytest.mark.parametrize(
    ("recipes", "vary", "message"),
    [
        (None, ["model.scor=dot"], r"unknown key 'model.scor'; did you mean 'model.score'"),
        (["rnn"], ["cross.normalizer=entmax15"], "unknown key 'cross.normalizer'"),
        (["rnn"], ["model.score=bad"], "model.score: expected 'additive' or .*got 'bad'"),
        (["rnn"], ["model.score=additive"], "--vary score=additive: no effect here"),
        (["rnn"], ["model.score"], "--vary: expected KEY=VALUE"),
        (["rnn"], [""], "--vary: expected KEY=VALUE"),
        (["rnn"], [{}], "expected at least one setting"),
        (["transformer"], ["encoder.pattern=window("], "pattern"),
        (["classify"], None, "not for --task translate"),
        (["lstm"], None, "recipe: expected rnn"),
        (["no.toml"], None, "cannot read no.toml"),
    ],
)
def test_refusals(recipes: list[str] | None, vary: list[str] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chosen_kinds(recipes, vary)
