"""Which model is kept, when a run ends, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.tasks.train import train
from regard.tasks.translation import task as translating
from regard.training.task import Validation
from tests.training import toy

FIVE = {
    "training.epochs": 5,
    "training.validations": 5,
    "training.patience": 2,
    "training.canonical_segmentation": 0.0,
}


def run(out: Path, validations: list[Validation], monkeypatch: pytest.MonkeyPatch, **settings: Any) -> toy.Watcher:
    """20 updates, validated after 4, 8, 12, 16 and 20."""
    left, screen = iter(validations), toy.Watcher()
    monkeypatch.setattr(translating, "validate", lambda *given: next(left))
    train(toy.PAIRS, out, settings=toy.TINY | FIVE | settings, device="cpu", screen=screen)
    return screen


def scored(scores: list[float], losses: list[float | None], constant: str = "") -> list[Validation]:
    return [Validation(score, "", "s", {}, loss, constant) for score, loss in zip(scores, losses, strict=True)]


def test_early_stopping_waits_while_the_loss_on_dev_falls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "m", scored([5, 4, 4, 4, 4], [3.0, 2.0, 1.5, 1.2, 1.1]), monkeypatch)
    assert toy.end(tmp_path / "m")["why"] == "done"
    run(tmp_path / "n", scored([5, 4, 4, 4, 4], [3.0, 2.0, 2.1, 2.2, 1.9]), monkeypatch)
    end = toy.end(tmp_path / "n")
    assert (end["why"], end["update"], end["best_update"]) == ("no better for 2 validations", 16, 4)


def test_early_stopping_waits_for_the_canonical_segmentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for fraction, update in ((0.0, 16), (0.25, 20)):
        out = tmp_path / str(fraction)
        setting = {"training.canonical_segmentation": fraction}
        run(out, scored([5, 4, 4, 4, 4], [3.0, 2.0, 2.1, 2.2, 2.3]), monkeypatch, **setting)
        assert toy.end(out)["update"] == update


def test_of_equal_scores_the_lower_loss_is_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "m", scored([0.0] * 5, [3.0, 2.0, 2.5, 1.0, 1.5]), monkeypatch)
    assert toy.end(tmp_path / "m")["best_update"] == 16


def test_the_first_model_is_kept_whatever_its_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "m", scored([-5.0] * 5, [None] * 5), monkeypatch)
    assert toy.end(tmp_path / "m")["best_update"] == 4


def test_that_nothing_is_learned_is_said_once_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = run(tmp_path / "m", scored([0.0] * 5, [5.0, 4.0, 3.0, 2.0, 1.0], "all alike"), monkeypatch).text
    assert text.count("nothing is learned yet: all alike") == 1
    assert text.count("nothing is learned: all alike") == 1


def test_a_model_that_learned_is_not_called_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However high its loss was from the first update on: imdb-long had an accuracy of 80 %."""
    settings = {"training.learning_rate": 1e-12}
    text = run(tmp_path / "m", scored([80.0] * 5, [0.6] * 5), monkeypatch, **settings).text
    assert "nothing is learned" not in text


def test_the_line_moves_and_says_what_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only at updates that are logged."""
    monkeypatch.setattr("regard.training.progress.SHOWN_SECONDS", 0.0)
    screen = run(tmp_path / "m", scored([1.0] * 5, [1.0] * 5), monkeypatch)
    assert screen.advanced == toy.end(tmp_path / "m")["update"]
    assert screen.statuses[:2] == ["reading", "learning the vocabulary"]
    assert "validating" in screen.statuses and screen.statuses[-1] == "scoring dev"
