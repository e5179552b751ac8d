"""The kinds of models that a comparison trains: each is a name and a recipe."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regard.config.recipe import Recipe
from regard.config.recipe_text import UnknownKeyError
from regard.tasks.registry import TRANSLATION

NEXT_SETTING = re.compile(r"[,\s]+(?=[A-Za-z_]\w*(?:\.\w+)+\s*=)")
"""what separates two settings: commas or blanks before KEY=; a key has a dot, unlike the arguments of a pattern"""


@dataclass(frozen=True)
class ModelKind:
    """One kind of model: a recipe with settings. The name is unique in its comparison, and so is the folder."""

    name: str
    recipe: Recipe
    settings: Mapping[str, str]

    @property
    def folder(self) -> str:
        """the name as that of a folder: blanks are hyphens; of a name with other signs, a hash tells it from others"""
        plain = self.name.replace(" ", "-")
        if re.fullmatch(r"[\w.=-]{1,80}", plain, re.ASCII):
            return plain
        shortened = re.sub(r"[^A-Za-z0-9_.=]+", "-", plain)[:60].strip("-.")
        return f"{shortened}-{hashlib.sha256(self.name.encode(errors='replace')).hexdigest()[:8]}"


WINDOW = "window(4)"  # of encoder self-attention: four subwords to each side
LOCAL = "10"  # D of local attention: the width of the window in Luong, Pham & Manning (2015)
DEFAULT_KINDS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    ("rnn additive", "rnn", {"model.score": "additive"}),
    ("rnn general", "rnn", {"model.score": "general"}),
    ("rnn local", "rnn", {"model.score": "general", "model.predictive": LOCAL}),
    ("transformer", "transformer", {}),
    ("transformer windows", "transformer", {"encoder.pattern": WINDOW}),
    (
        "transformer entmax15",
        "transformer",
        {f"{part}.normalizer": "entmax15" for part in ("encoder", "decoder", "cross")},
    ),
)
"""(name, recipe, settings) of the kinds that are compared by default"""
DEFAULT_BASES = ("rnn", "transformer")  # the recipes that --vary varies by default


def chosen_kinds(
    recipes: Sequence[str | Path] | None = None, vary: Sequence[str | Mapping[str, str]] | None = None
) -> list[ModelKind]:
    """Return the kinds to compare: the default ones, or each recipe, followed by its variations.

    A variation applies to each recipe that has its keys. Raise a ValueError if none has them, or if it changes none.
    """
    if not recipes and not vary:
        return [ModelKind(name, _recipe(base, settings), settings) for name, base, settings in DEFAULT_KINDS]
    bases = list(dict.fromkeys(map(str, recipes or DEFAULT_BASES)))
    stems = [Path(base).stem for base in bases]
    kinds: dict[str, list[ModelKind]] = {}
    for base in bases:
        name = Path(base).stem if stems.count(Path(base).stem) == 1 else base
        kinds[base] = [ModelKind(name, _recipe(base, {}), {})]
    for settings in map(_settings, vary or ()):
        _vary(kinds, settings)
    chosen = [kind for base in bases for kind in kinds[base]]
    if len({kind.recipe.training.max_characters for kind in chosen}) > 1:
        raise ValueError(
            "training.max_characters: expected the same for all kinds: it decides which pairs are set aside as dev set"
        )
    return chosen


def _vary(kinds: dict[str, list[ModelKind]], settings: Mapping[str, str]) -> None:
    """Append the variation to the kinds of each recipe that has its keys and that it changes."""
    errors: list[UnknownKeyError] = []
    added = False
    for base, kinds_of_base in kinds.items():
        try:
            recipe = _recipe(base, settings)
        except UnknownKeyError as error:
            errors.append(error)
            continue
        if not any(_computes_the_same(recipe, other.recipe) for other in kinds_of_base):
            kinds_of_base.append(ModelKind(f"{kinds_of_base[0].name} {_label(settings)}", recipe, settings))
            added = True
    if len(errors) == len(kinds):
        raise errors[0]
    if not added:
        raise ValueError(f"--vary {_label(settings)}: no effect here; expected another value than the recipe's")


def _recipe(base: str, settings: Mapping[str, str]) -> Recipe:
    return TRANSLATION.recipe(base, settings)


def _label(settings: Mapping[str, str]) -> str:
    """Return settings as part of a name: `score=general encoder.pattern=window(4)`."""
    return " ".join(f"{key.removeprefix('model.')}={value}" for key, value in settings.items())


def _settings(given: str | Mapping[str, str]) -> dict[str, str]:
    """Return the settings of one variation, given as `KEY=VALUE, KEY=VALUE` or as a mapping."""
    if isinstance(given, Mapping):
        settings = {str(key): str(value) for key, value in given.items()}
    else:
        settings = {}
        for part in NEXT_SETTING.split(given.strip().strip(",")):
            key, equals, value = part.partition("=")
            if not equals or not key.strip() or not value.strip():
                raise ValueError(f"--vary: expected KEY=VALUE, such as model.score=general, got {given!r}")
            settings[key.strip()] = value.strip()
    if not settings:
        raise ValueError("vary: expected at least one setting in each variation, got none")
    return settings


def _computes_the_same(one: Recipe, other: Recipe) -> bool:
    """Whether two recipes differ in nothing but their names."""
    return replace(one, name="") == replace(other, name="")
