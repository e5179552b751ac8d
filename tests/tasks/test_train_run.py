"""train(): what can go wrong in a run, and what is reported."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import regard
from regard.tasks.train import train
from regard.tasks.translation import task as translating
from regard.training import loop as loops
from regard.training.task import Validation
from tests.tasks.small import small, usable
from tests.training import toy

KINDS = {"plan", "update", "validation", "message", "end"}


# What can go wrong


def nan_loss(monkeypatch: pytest.MonkeyPatch, since: int = 1) -> None:
    """Let the loss be NaN from an update on. (A learning rate that is too high does so on some processors only.)"""
    real, calls = translating.smoothed_loss, [0]

    def broken(*given: Any) -> tuple[torch.Tensor, torch.Tensor]:
        calls[0] += 1
        loss, each = real(*given)
        return (loss * math.nan, each) if calls[0] >= since else (loss, each)

    monkeypatch.setattr(translating, "smoothed_loss", broken)


def test_a_run_that_diverges_before_its_first_validation_leaves_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as diverging:
        nan_loss(diverging)
        for how in ({}, {"resume": True}):  # it cannot go on either
            with pytest.raises(ValueError, match=r"no model: .*before the first validation \(diverged") as error:
                small(tmp_path / "m", settings={"training.epochs": 6}, **how)
            assert "\n" not in str(error.value) and "--overwrite" in str(error.value)
    toy.log(tmp_path / "m")
    with pytest.raises(ValueError, match=r"no model: .*diverged"):
        regard.load(tmp_path / "m", "cpu")
    small(tmp_path / "m", overwrite=True)
    usable(tmp_path / "m")


@pytest.mark.parametrize(("since", "validations"), [(1, 1), (13, 4), (3, 24)])
def test_a_loss_that_is_no_number_ends_the_run_in_words(
    since: int, validations: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model that is kept is one from before, if any was validated."""
    nan_loss(monkeypatch, since)
    screen = toy.Watcher()
    settings = {"training.epochs": 6, "training.validations": validations, "training.average": 0.9}
    if validations == 1:
        with pytest.raises(ValueError, match=r"no model: .*diverged"):
            small(tmp_path / "m", settings=settings, screen=screen)
    else:
        small(tmp_path / "m", settings=settings, screen=screen)
        usable(tmp_path / "m")
    assert "diverged: the loss became NaN; try a lower training.learning_rate" in screen.text
    ends = [entry for entry in toy.log(tmp_path / "m") if entry["kind"] == "end"]
    assert len(ends) == 1 and ends[0]["why"].startswith("diverged")
    assert ends[0]["update"] <= since + loops.CHECK_INTERVAL
    assert ends[0]["best_update"] < since


NOTHING = "nothing is learned yet: every source gets the same translation"


def test_a_model_that_says_the_same_to_everything_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_ends(average: dict[str, Tensor], *_: object) -> None:
        average["output.bias"][2] = 100.0

    monkeypatch.setattr(loops, "update_average_", only_ends)
    screen = toy.Watcher()
    small(tmp_path / "m", screen=screen)
    assert NOTHING in screen.text and "(nothing)" in screen.text
    assert any(entry["kind"] == "message" and NOTHING in entry["text"] for entry in toy.log(tmp_path / "m"))


def test_a_run_that_learned_nothing_says_so(tmp_path: Path) -> None:
    """At a learning rate of nothing: the same piece again and again, as long as each source allows."""
    screen = toy.Watcher()
    small(tmp_path / "m", screen=screen, settings={"training.learning_rate": 1e-12})
    assert "nothing is learned" in screen.text


def test_a_run_that_learns_does_not_say_so(tmp_path: Path) -> None:
    screen = toy.Watcher()
    small(tmp_path / "m", screen=screen, settings={"training.learning_rate": 0.02, "training.epochs": 10})
    assert "best so far" in screen.text
    validations = [entry for entry in toy.log(tmp_path / "m") if entry["kind"] == "validation"]
    assert validations[-1]["dev_loss"] < validations[0]["dev_loss"]
    assert "nothing is learned:" not in screen.text


def test_a_run_by_the_clock_keeps_to_its_time(tmp_path: Path) -> None:
    minutes = 0.1
    began = time.monotonic()
    small(tmp_path / "m", minutes=minutes)
    assert 0.5 * minutes * 60 < time.monotonic() - began < 1.3 * minutes * 60 + 1
    usable(tmp_path / "m")
    plans = [entry for entry in toy.log(tmp_path / "m") if entry["kind"] == "plan"]
    assert not plans[0]["settled"] and plans[-1]["updates"] > 24
    assert toy.end(tmp_path / "m")["best_update"] > 0


def test_no_time_at_all_still_leaves_a_model(tmp_path: Path) -> None:
    small(tmp_path / "m", minutes=1e-6)
    usable(tmp_path / "m")
    assert toy.end(tmp_path / "m")["why"] == "the time is up"


@pytest.mark.parametrize("minutes", [math.nan, math.inf, -1.0])
def test_minutes_that_are_no_time_are_refused(minutes: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="minutes"):
        small(tmp_path / "m", minutes=minutes)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("device", ["foo", "cuda" if not torch.cuda.is_available() else "cuda:99"])
def test_a_device_that_is_not_there_is_refused_before_anything_is_written(device: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="device"):
        train(toy.PAIRS, tmp_path / "m", settings=toy.TINY, device=device)
    assert list(tmp_path.iterdir()) == []


# What is told


def test_the_log_is_json_lines_of_known_kinds(model: Path) -> None:
    entries = toy.log(model)
    assert {entry["kind"] for entry in entries} <= KINDS
    assert all(time.strptime(entry["time"], "%Y-%m-%dT%H:%M:%SZ") for entry in entries)
    (plan,) = [entry for entry in entries if entry["kind"] == "plan"]
    assert plan["updates"] == 8 and plan["validations"] == [2, 4, 6, 8]
    assert [entry["update"] for entry in entries if entry["kind"] == "validation"] == [2, 4, 6, 8]
    for entry in entries:
        if entry["kind"] == "update":
            assert entry.keys() >= {"update", "epoch", "loss", "tokens_per_second", "seconds"}
        if entry["kind"] == "validation":
            assert entry.keys() >= {"chrf", "exact", "best", "loss", "seconds", "source", "translation", "reference"}
    assert toy.end(model)["why"] == "done"


def test_the_seconds_of_a_validation_are_those_of_its_moment(tmp_path: Path) -> None:
    small(tmp_path / "m", settings={"training.epochs": 13, "training.validations": 2})
    seconds = [entry["seconds"] for entry in toy.log(tmp_path / "m") if entry["kind"] in ("update", "validation")]
    assert seconds == sorted(seconds)


def falling_scores(monkeypatch: pytest.MonkeyPatch, scores: list[float]) -> None:
    left = iter(scores)
    monkeypatch.setattr(translating, "validate", lambda *given: Validation(next(left), "", "s"))


def test_the_best_model_is_kept_and_patience_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    falling_scores(monkeypatch, [1.0, 5.0, 4.0, 3.0, 9.0])
    settings = {"training.epochs": 5, "training.validations": 5, "training.patience": 2}
    settings |= {"training.canonical_segmentation": 0}
    small(tmp_path / "m", settings=settings)
    end = toy.end(tmp_path / "m")
    assert end["why"] == "no better for 2 validations" and end["best"] == 5.0
    assert (end["best_update"], end["update"]) == (8, 16)
    # The same, broken off after its eighth update: the average of that moment is the model.
    falling_scores(monkeypatch, [1.0, 5.0, 4.0, 3.0, 9.0])
    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "n", settings=settings, screen=toy.Watcher(interrupt_on="update 8:"))
    assert toy.differing(toy.weights(tmp_path / "m"), toy.weights(tmp_path / "n")) == []


def test_a_run_ends_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where patience is at its end with the last update."""
    falling_scores(monkeypatch, [5.0, 4.0])
    screen = toy.Watcher()
    small(tmp_path / "m", settings={"training.validations": 2, "training.patience": 1}, screen=screen)
    assert [entry["kind"] for entry in toy.log(tmp_path / "m")].count("end") == 1
    assert sum("after 8 updates" in text for text in screen.messages) == 1
