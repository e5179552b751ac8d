"""train_from_card(): a training is repeated bit for bit from its card, and what cannot be is refused in a sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.config import folder as folders
from tests.training import toy, toy_labels

VOLATILE = ("minutes", "command", "run")  # entries of a card that differ in a repetition
OPEN = {key: value for key, value in toy.TINY.items() if key not in ("vocabulary.size", "training.batch_sentences")}
"""settings that leave sizes to the data"""
SMALL_TRANSFORMER = {key: value for key, value in toy.ATTENDS.items() if key != "vocabulary.size"} | {
    "training.epochs": 2,
    "model.dropout": 0.1,
}
KINDS: dict[str, dict[str, Any]] = {
    "rnn": {"recipe": "rnn", "settings": OPEN},
    "transformer": {"recipe": "transformer", "settings": SMALL_TRANSFORMER},
    "classify": {"task": "classify", "settings": toy_labels.TINY},
    "reversed, with dev and more pairs": {
        "settings": toy.TINY,
        "reverse": True,
        "dev": "dev.tsv",
        "extra": ["extra.tsv"],
        "languages": ("en", "mr"),
        "seed": 7,
        "precision": "fp32",
    },
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with data."""
    toy.write_tsv(tmp_path / "pairs.tsv")
    toy.write_tsv(tmp_path / "dev.tsv", [(source + "!", target) for source, target in toy.PAIRS[:20]])
    toy.write_tsv(tmp_path / "extra.tsv", [(target, source + "?") for source, target in toy.PAIRS[:20]])
    toy.write_tsv(tmp_path / "texts.tsv", toy_labels.TEXTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and a model, for copies."""
    folder = tmp_path_factory.mktemp("trained")
    regard.train(toy.write_tsv(folder / "pairs.tsv"), folder / "model", settings=toy.TINY, device="cpu", threads=1)
    return folder


def changed(folder: Path, **entries: Any) -> None:
    """Change entries of a card; None removes one."""
    card = folders.read_card(folder) | entries
    folders.write_card(folder, {name: value for name, value in card.items() if value is not None})


def stable(folder: Path) -> dict[str, Any]:
    card = folders.read_card(folder)
    return {name: value for name, value in card.items() if name not in VOLATILE}


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_is_repeated_bit_for_bit(kind: str, here: Path) -> None:
    data = "texts.tsv" if kind == "classify" else "pairs.tsv"
    regard.train(data, "first", device="cpu", threads=1, **KINDS[kind])
    screen = toy.Watcher()
    regard.train_from_card("first", "second", screen=screen)
    assert screen.messages[-1] == "the weights are those of the card, bit for bit"
    assert "other versions" not in screen.text and "other hardware" not in screen.text
    for name in ("model.safetensors", "recipe.toml"):
        assert (here / "first" / name).read_bytes() == (here / "second" / name).read_bytes(), name
    assert stable(here / "first") == stable(here / "second")
    runs = [folders.read_card(here / name)["run"] for name in ("first", "second")]
    assert runs[0] == runs[1] and runs[0]["data"] == [data], "paths are those that were given"
    assert str(here) not in (here / "first" / "card.json").read_text(encoding="utf-8")


def test_a_run_by_the_clock_is_repeated_by_its_plan(here: Path) -> None:
    settings = {key: value for key, value in OPEN.items() if key != "training.epochs"}
    regard.train("pairs.tsv", "first", settings=settings, minutes=0.07, device="cpu", threads=1)
    screen = toy.Watcher()
    regard.train_from_card("first/card.json", "second", screen=screen)
    assert screen.messages[-1] == "the weights are those of the card, bit for bit"
    first, second = (folders.read_card(here / name) for name in ("first", "second"))
    assert first["plan"] == second["plan"] and first["scores"] == second["scores"]
    assert first["plan"]["updates"] == toy.end(here / "second")["update"]


def test_a_repetition_can_be_resumed(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        regard.train_from_card(trained / "model", tmp_path / "m", screen=toy.Watcher(interrupt_at=3))
    screen = toy.Watcher()
    regard.train_from_card(trained / "model", tmp_path / "m", resume=True, screen=screen)
    assert screen.messages[-1] == "the weights are those of the card, bit for bit"


def test_other_data_are_refused(trained: Path, tmp_path: Path) -> None:
    other = toy.write_tsv(tmp_path / "other.tsv", toy.PAIRS[:-1])
    with pytest.raises(ValueError, match=r"card\.json: trained on other data: expected SHA-256 \w{64}, got other\.tsv"):
        regard.train_from_card(trained / "model", tmp_path / "m", other)
    with pytest.raises(ValueError, match="trained on other dev data: expected SHA-256 none"):
        regard.train_from_card(trained / "model", tmp_path / "m", dev=other)
    assert not (tmp_path / "m").exists()


def test_files_that_moved_are_named(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    moved = shutil.copy(trained / "pairs.tsv", tmp_path / "moved.tsv")
    entry = folders.read_card(tmp_path / "model")["run"]
    changed(tmp_path / "model", run=entry | {"data": ["gone.tsv"]})
    with pytest.raises(ValueError, match=r"gone\.tsv: there is no such file now; expected the same data as PAIRS"):
        regard.train_from_card(tmp_path / "model", tmp_path / "m")
    screen = toy.Watcher()
    regard.train_from_card(tmp_path / "model", tmp_path / "m", moved, screen=screen)
    assert screen.messages[-1] == "the weights are those of the card, bit for bit"


def test_data_from_python_are_needed_again(tmp_path: Path) -> None:
    regard.train(toy.PAIRS, tmp_path / "model", settings=toy.TINY, device="cpu", threads=1)
    with pytest.raises(ValueError, match="trained on data that were not files; expected them as an argument"):
        regard.train_from_card(tmp_path / "model", tmp_path / "m")
    screen = toy.Watcher()
    regard.train_from_card(tmp_path / "model", tmp_path / "m", toy.PAIRS, screen=screen)
    assert screen.messages[-1] == "the weights are those of the card, bit for bit"


def test_other_versions_hardware_and_weights_are_told(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    card = folders.read_card(tmp_path / "model")
    changed(
        tmp_path / "model",
        versions=card["versions"] | {"torch": "1.0"},
        hardware="cpu, 99 cores",
        weights_sha256="0" * 64,
    )
    screen = toy.Watcher()
    regard.train_from_card(tmp_path / "model", tmp_path / "m", screen=screen)
    assert "other versions, which may change the result: torch 2" in screen.text and "(card: 1.0)" in screen.text
    assert "other hardware, which may change the result: cpu" in screen.text and "(card: cpu, 99 cores)" in screen.text
    assert screen.messages[-1] == "the weights differ from those of the card"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"run": None}, "it has no entry `run`"),
        ({"best": {"chosen": "student"}}, "made by --best, .*expected its command again: "),
        ({"run": {"data": "x"}}, "damaged: run"),
        ({"run.threads": 0}, "damaged: run"),
        ({"run.data": [1]}, "damaged: run"),
        ({"run.reverse": "no"}, "damaged: run"),
        ({"run.recipe": []}, "damaged: run: expected a recipe"),
        ({"run.recipe": {"model": {"kind": "rnn", "colour": 1}}}, "colour"),
        ({"run.minutes": 1.0}, "damaged: expected the `plan`"),
        ({"run.minutes": 1.0, "plan": {"steps": [[1, 2]], "validations": [], "updates": 3}}, "expected the `plan`"),
        ({"run.minutes": 1.0, "ended": None}, "planned by the clock, and not ended"),
        ({"seed": "one"}, "damaged: seed"),
        ({"versions": None}, "damaged: versions"),
        ({"task": "juggle"}, "damaged"),
        ({"run.device": "abacus"}, "device"),
    ],
)
def test_cards_that_cannot_be_repeated(entries: dict[str, Any], message: str, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    card = folders.read_card(tmp_path / "model")
    run = card["run"] | {name.partition(".")[2]: value for name, value in entries.items() if name.startswith("run.")}
    others = {name: value for name, value in entries.items() if not name.startswith("run.")}
    changed(tmp_path / "model", **{"run": run} | others)
    with pytest.raises(ValueError, match=message) as error:
        regard.train_from_card(tmp_path / "model", tmp_path / "m")
    assert "\n" not in str(error.value) and not (tmp_path / "m").exists()


def test_a_card_alone_is_enough(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "only").mkdir()
    shutil.copy(trained / "model" / "card.json", tmp_path / "only")
    screen = toy.Watcher()
    regard.train_from_card(tmp_path / "only" / "card.json", tmp_path / "m", screen=screen)
    assert screen.messages[-1] == "the weights are those of the card, bit for bit"


def test_numbers_of_a_card_stand_on_one_line(tmp_path: Path) -> None:
    lists = {
        "numbers": [1, -2.5, 3e-07],
        "texts": ["a", "b"],
        "nested": [[1, 2], [3, 4]],
        "empty": [],
        "text": "[\n  1\n]",
    }
    folders.write_card(tmp_path, {"task": "translate", **lists})
    text = (tmp_path / "card.json").read_text(encoding="utf-8")
    assert '"numbers": [1, -2.5, 3e-07],\n' in text and "    [1, 2],\n" in text
    assert {name: json.loads(text)[name] for name in lists} == lists
