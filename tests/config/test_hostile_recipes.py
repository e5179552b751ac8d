"""Recipes from strangers: one error in a sentence, at once, whatever they ask for."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from regard.config.recipe_text import from_toml, read_recipe

HOSTILE = [
    "[model]\nencoder_layers = 2000000000",
    "[model]\nencoder_layers = " + "9" * 5000,
    "[model]\nencoder_layers = 0x" + "f" * 5000,
    "[model]\ndropout = 0x" + "f" * 500,
    "[model]\ndropout = 1e400",
    "[model]\ndropout = nan",
    "[training]\nlearning_rate = inf",
    "[training]\nlearning_rate = " + "9" * 400,
    "[search]\nbeam = 1000000",
    "[search]\nmbr = 1000000000",
    "x = " + "[" * 50_000,
    "x = " + "{a=" * 15_000,
    ".".join(["a"] * 30_000) + " = 1",
    "[" + ".".join(["a"] * 10_000) + "]\n" + "b = 1\n" * 5_000,
    '[model]\npattern = "global(0:2000000000)"',
    '[model]\npattern = "' + "per_head(" * 5_000 + '"',
    '[model]\npattern = "' + "full|" * 10_000 + 'full"',
    '[model]\npattern = "' + "(" * 60_000 + '"',
    '[model]\npattern = "global([' + "[" * 50_000 + '"',
    '[model]\npattern = "window(' + "9" * 50_000 + ')"',
    'base = "' + "x" * 60_000 + '"',
    "y" * 60_000 + " = 1",
    "# " + "x" * 70_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_recipe_is_refused_at_once(text: str, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(text, encoding="utf-8")
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"expected|unknown key|not TOML|limit"):
        read_recipe(tmp_path / "r.toml")
    assert time.monotonic() - began < 3


def test_a_recipe_in_place_of_a_device_ends(tmp_path: Path) -> None:
    (tmp_path / "r.toml").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="expected at most 65,536 bytes"):
        read_recipe(tmp_path / "r.toml")


def test_an_honest_recipe_with_line_ends_of_windows(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_bytes(b"[training]\r\nepochs = 3\r\n")
    assert read_recipe(tmp_path / "r.toml").training.epochs == 3
    assert from_toml("[search]\nbeam = 100\nmbr = 1000").search.beam == 100
