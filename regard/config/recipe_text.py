"""Recipes as text: read by name or from TOML, with single values set, and written as TOML."""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from regard.config.card import shown
from regard.config.recipe import KINDS, RECIPES, Recipe
from regard.models.building import check

MAX_BYTES = 1 << 16  # of a file of a recipe
MAX_DOTS = 100  # in a line: the time to read nested keys grows with their depth times their number
SECTIONS = tuple(item.name for item in dataclasses.fields(Recipe) if item.name != "name")  # the tables of a recipe


class UnknownKeyError(ValueError):
    """A setting that a recipe does not have."""


def default_translation_recipe(settings: Mapping[str, Any] | None = None, best: str = "rnn") -> Recipe:
    """Return the default recipe: `best`, or the other of rnn and transformer if only that one has the settings."""
    errors: list[ValueError] = []
    for name in sorted(("rnn", "transformer"), key=lambda name: name != best):
        try:
            return read_recipe(name, settings)
        except ValueError as error:
            errors.append(error)
    # A recipe that knows all the keys has more to say about their values than one that does not.
    raise next((error for error in errors if not isinstance(error, UnknownKeyError)), errors[0])


def read_recipe(given: str | Path | Recipe, settings: Mapping[str, Any] | None = None) -> Recipe:
    """Return a recipe by name, from a TOML file or as given, with values set, such as {"training.epochs": 5}."""
    if isinstance(given, Recipe):
        recipe = given
    elif str(given) in RECIPES:
        recipe = RECIPES[str(given)]
    elif str(given).endswith(".toml"):
        recipe = from_toml(_file_text(Path(given)), str(given))
    else:
        suggestion = _suggestion(str(given), RECIPES)
        raise ValueError(f"recipe: expected {', '.join(RECIPES)} or a .toml file, got {str(given)!r}{suggestion}")
    for key, value in (settings or {}).items():
        recipe = _with_setting(recipe, key, value)
    try:
        check(recipe.model)
    except ValueError as error:
        raise ValueError(f"recipe: model: {error}") from None
    return recipe


def _file_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"recipe: {path}: expected at most {MAX_BYTES:,} bytes, got more")
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ValueError(f"recipe: {path}: expected TOML, which is UTF-8, and this is not") from None
    except OSError as error:
        raise ValueError(f"recipe: cannot read {path}: {error.strerror}") from None


# TOML


def from_toml(text: str, name: str = "recipe") -> Recipe:
    """Return the recipe that `to_toml` wrote, or any part of one: missing values are those of `base`, or of `rnn`.

    `name` is what errors call the text.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MAX_DOTS:
            raise ValueError(f"{name}: line {number}: expected at most {MAX_DOTS} dots, got {line.count('.'):,}")
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # RecursionError: thousands of brackets inside each other
        raise ValueError(f"{name}: not TOML: {error}") from None
    return from_tree(tree, name)


def from_tree(tree: Mapping[str, Any], name: str = "recipe") -> Recipe:
    """Return the recipe of a tree of values, as TOML has them. `name` is what errors call it."""
    base = tree.get("base", "rnn")
    if not isinstance(base, str) or base not in RECIPES:
        raise ValueError(f"{name}: base: expected {', '.join(RECIPES)}, got {shown(base)}")
    recipe = RECIPES[base]
    settings = _flattened({key: value for key, value in tree.items() if key != "base"})
    for path in sorted(settings, key=lambda path: path != "model.kind"):  # the kind first: it decides which keys exist
        recipe = _with_setting(recipe, path, settings[path])
    return recipe


def to_toml(recipe: Recipe) -> str:
    """Return the whole recipe as TOML, without the values that are left open."""
    return "\n".join(_toml_table(recipe, "")).strip("\n") + "\n"


def _flattened(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested mapping with dotted keys: {"model.dropout": 0.3, …}."""
    values: dict[str, Any] = {}
    for key, value in tree.items():
        values |= _flattened(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return values


def _toml_table(section: Any, path: str) -> list[str]:
    """Return the lines of a dataclass as a TOML table: its values, then the tables of its inner dataclasses."""
    values = {item.name: getattr(section, item.name) for item in dataclasses.fields(section)}
    inner = {name: value for name, value in values.items() if dataclasses.is_dataclass(value)}
    lines = ["", f"[{path}]"] if path else []
    lines += [
        f"{name} = {_toml_value(value)}" for name, value in values.items() if name not in inner and value is not None
    ]
    for name, value in inner.items():
        lines += _toml_table(value, f"{path}.{name}" if path else name)
    return lines


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


# Settings


def _with_setting(recipe: Recipe, path: str, value: Any) -> Recipe:
    """Return the recipe with one value changed. A text is parsed as the type expected there. `encoder.x` is short for
    `model.encoder.x`."""
    keys = path.split(".")
    if keys[0] not in [*SECTIONS, "name"] and dataclasses.is_dataclass(getattr(recipe.model, keys[0], None)):
        keys.insert(0, "model")
    if keys == ["model", "kind"]:
        kind = _parsed(path, value, Literal[tuple(KINDS)])
        return recipe if recipe.model.kind == kind else replace(recipe, model=KINDS[kind]())
    if keys != ["name"] and (keys[0] not in SECTIONS or len(keys) < 2):
        known = _flattened(dataclasses.asdict(recipe))
        by_last_key = {name.rpartition(".")[2]: name for name in known}
        near = by_last_key.get(path) or next(iter(difflib.get_close_matches(path, known, 1)), "")
        raise UnknownKeyError(f"recipe: unknown key {path!r}" + (f"; did you mean {near!r}?" if near else ""))
    changed: Recipe = _replaced(recipe, keys, value, "")
    return changed


def _replaced(section: Any, keys: list[str], value: Any, prefix: str) -> Any:
    """Return the dataclass with the value at the end of the keys changed."""
    field_types, (key, *rest) = typing.get_type_hints(type(section)), keys
    path = prefix + ".".join(keys)
    inner = getattr(section, key, None)
    if key not in field_types or dataclasses.is_dataclass(inner) != bool(rest):
        raise UnknownKeyError(f"recipe: unknown key {path!r}{_suggestion(key, field_types, prefix)}")
    if rest:
        return replace(section, **{key: _replaced(inner, rest, value, f"{prefix}{key}.")})
    return replace(section, **{key: _parsed(path, value, field_types[key])})


def _suggestion(name: str, known: Mapping[str, Any], prefix: str = "") -> str:
    """Return "; did you mean …?" with the known name nearest to this one, or nothing."""
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {prefix + near[0]!r}?" if near else ""


def _parsed(path: str, value: Any, expected: Any) -> Any:
    """Return the value as the expected type; raise a ValueError if it is none."""
    options = typing.get_args(expected) if isinstance(expected, types.UnionType) else (expected,)
    flag = {"true": True, "false": False}.get(str(value).lower())
    if bool in options and flag is not None:
        return flag
    expected = next(option for option in options if option is not type(None))
    if typing.get_origin(expected) is Literal:
        choices = typing.get_args(expected)
        if value not in choices:
            raise ValueError(f"recipe: {path}: expected {' or '.join(map(repr, choices))}, got {shown(value)}")
        return value
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    description = " or ".join(names[option] for option in reversed(options) if option is not type(None))
    mismatch = ValueError(f"recipe: {path}: expected {description}, got {shown(value)}")
    if expected is bool or isinstance(value, bool) or (expected is int and isinstance(value, float)):
        raise mismatch
    try:
        parsed = expected(value)
    except (TypeError, ValueError, OverflowError):
        raise mismatch from None
    if expected is not str and (not -1e12 < parsed < 1e12 or parsed < 0):
        raise ValueError(f"recipe: {path}: expected {description} of at least 0, got {shown(value)}")
    return parsed
