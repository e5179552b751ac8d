"""The model's card in short lines."""

from __future__ import annotations

from typing import Any

import pytest

from regard.look.card_view import MAX_LABELS, card_view


def test_a_card_as_training_writes_it() -> None:
    card = {
        "languages": ["en", "mr"],
        "data": {"name": "train.tsv", "lines": 3102, "sha256": "0" * 64, "train_pairs": 3102, "dev_pairs": 268},
        "parameters": 1_114_609,
        "seed": 1,
        "minutes": 2.6,
        "scores": {"bleu": 86.247, "chrf": 94.333, "ter": 6.165, "exact": 76.6, "sources": 265, "references": 268},
        "versions": {"regard": "0.1.0", "torch": "2.13.0", "python": "3.11.7", "numpy": "2.4.6"},
    }
    assert card_view(card) == {
        "lines": [
            ["Languages", "en → mr"],
            ["Trained on", "train.tsv · 3,102 training examples, 268 for validation"],
            ["Parameters", "1.1 million"],
            ["Seed", "1"],
            ["Training time", "2.6 minutes"],
            ["Scores", "chrF++ 94.3 · BLEU 86.2 · TER 6.2 · exact match 77 %, on 265 sentences"],
            ["Made with", "regard 0.1.0, torch 2.13.0, python 3.11.7"],
        ],
        "confusion": None,
    }


@pytest.mark.parametrize(
    ("entry", "value", "line"),
    [
        ("minutes", 180, "3.0 hours"),
        ("parameters", 900, "900"),
        ("scores", {"own": 0.123456, "nested": {"x": 1}}, "own 0.1235"),
        ("scores", "none", "none"),
        ("data", {"name": "x"}, "x"),
        ("other", [1000] * 20, ", ".join(["1,000"] * 12) + ", …"),
        ("other", {"hash": "abcdef012345" + "6" * 52, "on": True}, "hash abcdef012345… · on yes"),
        ("languages", "en", "en"),
        ("versions", None, "None"),
    ],
)
def test_values_from_strangers(entry: str, value: Any, line: str) -> None:
    assert card_view({entry: value})["lines"][0][1] == line


def test_only_a_whole_confusion_matrix_is_shown() -> None:
    def shown(labels: Any, counts: Any) -> Any:
        return card_view({"scores": {"labels": labels, "confusion": counts}})["confusion"]

    assert shown(["a", "b"], [[1, 2], [3, 4]]) == {"labels": ["a", "b"], "counts": [[1, 2], [3, 4]]}
    assert shown(["a", "b"], [[1, 2]]) is None and shown(["a", "b"], [[1, 2], [3]]) is None
    assert shown(["a"], [["<b>"]]) is None and shown([], []) is None and shown(None, None) is None
    many = [str(number) for number in range(MAX_LABELS + 1)]
    assert shown(many, [[0] * len(many)] * len(many)) is None
