"""One over-long line costs a training nothing but a notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.tasks.train import train
from regard.text.pairs import Pair
from regard.text.split import split
from tests.training import toy, toy_labels

LONG = "a very long line " * 1200
"""20,400 characters"""
BYTES = "".join(map(chr, range(0x4E00, 0x4E00 + 900)))
"""900 characters, each so rare that it is three tokens"""
QUICK: dict[str, Any] = toy.TINY | {"training.epochs": 1}


def run(out: Path, pairs: Any, settings: dict[str, Any] | None = None, **options: Any) -> str:
    """What is told."""
    screen = toy.Watcher()
    train(pairs, out, settings=QUICK | (settings or {}), device="cpu", screen=screen, **options)
    return screen.text


def falls(pairs: list[tuple[str, str]]) -> str:
    """The part that the last pair falls into."""
    train_part, _ = split([Pair(source, target, line) for line, (source, target) in enumerate(pairs)])
    return "train" if train_part[-1].line == len(pairs) - 1 else "dev"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("long") / "plain"
    run(out, toy.PAIRS)
    return out


@pytest.mark.parametrize("place", [0, 40, 80])
@pytest.mark.parametrize("pair", [(LONG, LONG), ("x" * 5_000_000, "y"), ("x", LONG)], ids=["both", "5 MB", "target"])
def test_the_model_is_the_same_as_without_it(place: int, pair: tuple[str, str], plain: Path, tmp_path: Path) -> None:
    report = run(tmp_path / "m", [*toy.PAIRS[:place], pair, *toy.PAIRS[place:]])
    assert f"1 line skipped, longer than 1,000 characters (training.max_characters): {place + 1}" in report
    assert toy.differing(toy.weights(tmp_path / "m"), toy.weights(plain)) == []


@pytest.mark.parametrize("part", ["train", "dev"])
def test_a_line_of_too_many_tokens_is_skipped_wherever_it_falls(part: str, tmp_path: Path) -> None:
    sources = (f"{BYTES} {number}" for number in range(100))
    pairs = next(pairs for pairs in ([*toy.PAIRS, (source, "x")] for source in sources) if falls(pairs) == part)
    report = run(tmp_path / "m", pairs)
    where = "dev: " if part == "dev" else "pairs: "
    assert f"{where}1 line skipped, longer than 400 tokens (training.max_tokens): 81" in report
    card = json.loads((tmp_path / "m" / "card.json").read_text(encoding="utf-8"))
    assert card["longest_source"] < 100 and card["data"]["train_pairs"] + card["data"]["dev_pairs"] == 80


def test_long_lines_of_a_given_dev_part_are_not_decoded(tmp_path: Path, plain: Path) -> None:
    report = run(tmp_path / "m", toy.PAIRS[:60], dev=[*toy.PAIRS[60:], (LONG, LONG), (BYTES, "x")])
    assert "1 line skipped, longer than 1,000 characters (training.max_characters): 21" in report
    assert "dev: 1 line skipped, longer than 400 tokens (training.max_tokens): 22" in report
    assert regard.load(tmp_path / "m").card["data"]["dev_pairs"] == 20


def test_the_limits_are_keys_of_the_recipe_and_kept_in_it(plain: Path, tmp_path: Path) -> None:
    recipe = (plain / "recipe.toml").read_text(encoding="utf-8")
    assert "max_characters = 1000\n" in recipe and "max_tokens = 400\n" in recipe
    long = ("The boy sees a mango. " * 60, "मुलगा आंबा पाहतो. " * 60)
    limits = {"training.max_characters": 2000, "training.max_tokens": 2000}
    assert "skipped" not in run(tmp_path / "m", [*toy.PAIRS, long], limits)
    report = run(tmp_path / "n", toy.PAIRS, {"training.max_characters": 24})
    assert "lines skipped, longer than 24 characters (training.max_characters)" in report
    with pytest.raises(ValueError, match=r"pairs: no pair left.*5 characters"):
        run(tmp_path / "o", toy.PAIRS, {"training.max_characters": 5})
    assert not (tmp_path / "o").exists()


def test_a_run_with_a_long_line_is_resumed(tmp_path: Path) -> None:
    pairs = [(LONG, "x"), *toy.PAIRS, (BYTES, "x")]
    with pytest.raises(KeyboardInterrupt):
        train(pairs, tmp_path / "m", settings=QUICK, device="cpu", screen=toy.Watcher(interrupt_at=2))
    assert "skipped" in run(tmp_path / "m", pairs, resume=True)


def test_a_long_text_is_not_classified_in_training(tmp_path: Path) -> None:
    texts = [(text, label) for text, label in toy_labels.TEXTS]
    settings = toy_labels.TINY
    screen = toy.Watcher()
    options: dict[str, Any] = {"task": "classify", "settings": settings, "device": "cpu"}
    train(texts, tmp_path / "a", **options)
    train([*texts, (LONG, texts[0][1])], tmp_path / "b", screen=screen, **options)
    line = len(texts) + 1
    assert f"1 line skipped, longer than 1,000 characters (training.max_characters): {line}" in screen.text
    assert toy.differing(toy.weights(tmp_path / "a"), toy.weights(tmp_path / "b")) == []
