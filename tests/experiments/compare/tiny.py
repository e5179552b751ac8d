"""Comparisons of models that are trained in a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import regard
from regard.config.recipe_text import read_recipe, to_toml
from tests.training import toy

FAILS = "training.max_tokens=1"  # no pair is left


def recipe(folder: Path, name: str = "tiny", **more: Any) -> Path:
    """Write a recipe for a tiny recurrent model."""
    file = folder / f"{name}.toml"
    file.write_text(to_toml(read_recipe("rnn", toy.LEARNS | more)), encoding="utf-8")
    return file


def transformer(folder: Path) -> Path:
    """Write a recipe for a tiny Transformer."""
    file = folder / "attends.toml"
    file.write_text(to_toml(read_recipe("transformer", toy.ATTENDS)), encoding="utf-8")
    return file


def gold_files(folder: Path) -> list[Path]:
    """Write sentence pairs with gold links of their first words."""
    pairs = toy.write_tsv(folder / "gold.tsv", toy.PAIRS[:10])
    links = folder / "gold.talp"
    links.write_text("0-0 1p0\n" * 10)
    return [pairs, links]


def compare(out: Path, **options: Any) -> regard.Comparison:
    """Compare on the toy language, for the epochs of the recipes."""
    given: dict[str, Any] = {"seeds": 1, "minutes": None, "device": "cpu", "precision": "fp32", "jobs": 1} | options
    return regard.compare(given.pop("data", toy.PAIRS), out, **given)
