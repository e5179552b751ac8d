"""The card of a model from a stranger: values that are used have their types and limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regard.config import folder as folders
from regard.config.card import check_card

CARD: dict[str, Any] = {
    "format": 2,
    "task": "translate",
    "labels": ["good", "bad"],
    "languages": ["en", "mr"],
    "length": {"ratio": 1.5, "margin": 3},
    "longest_source": 30,
    "temperature": 1.2,
    "data": {"name": "x"},
    "parameters": 3,
    "scores": {"chrf": 3.0, "odd": float("nan")},
}


def test_a_card_as_training_writes_it_is_accepted() -> None:
    check_card(CARD)
    check_card({"task": "translate", "languages": None})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("task", None),
        ("task", ["translate"]),
        ("labels", []),
        ("labels", "good"),
        ("labels", ["good", "good"]),
        ("labels", ["good", 3]),
        ("labels", ["good", "\ud800"]),
        ("languages", ["en"]),
        ("languages", "en"),
        ("languages", [1, 2]),
        ("length", {"ratio": float("inf"), "margin": 3}),
        ("length", {"ratio": float("nan"), "margin": 3}),
        ("length", {"ratio": 10**400, "margin": 3}),
        ("length", {"ratio": -1, "margin": 3}),
        ("length", {"ratio": True, "margin": 3}),
        ("length", {"ratio": 1}),
        ("longest_source", 10**30),
        ("longest_source", -1),
        ("longest_source", 1.5),
        ("longest_source", "30"),
        ("temperature", 0),
        ("temperature", float("nan")),
        ("temperature", 10**400),
        ("temperature", "1"),
        ("data", []),
        ("parameters", "many"),
        ("scores", 3),
        ("best", []),
    ],
)
def test_a_wrong_value_is_named(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{key}: expected .*, got") as error:
        check_card(CARD | {key: value})
    assert len(str(error.value)) < 300


def test_a_tree_too_deep_to_be_written_again_is_refused(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    with pytest.raises(ValueError, match="levels of JSON"):
        check_card(CARD | {"more": deep})
    (tmp_path / "card.json").write_text(json.dumps(CARD)[:-1] + ', "more": ' + "[" * 10**5, encoding="utf-8")
    with pytest.raises(ValueError, match=r"card\.json: damaged"):
        folders.read_card(tmp_path)


def test_a_card_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "card.json").open("wb") as file:
        file.truncate(1 << 36)
    with pytest.raises(ValueError, match="expected at most"):
        folders.read_card(tmp_path)
