"""A classifier distilled from folds: who labels whom, what is resumed, and what comes out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.experiments.best import classification as best
from regard.experiments.best.classification import hashed_folds, soft_labels, train_best_classifier
from regard.tasks.classification.soft_labels import SoftLabelled
from regard.text.pairs import Pair
from tests.training import toy_labels as toy

PAIRS = [Pair(text, label, line) for line, (text, label) in enumerate(toy.TEXTS, 1)]
TRAIN, DEV = PAIRS[20:], PAIRS[:20]
OPTIONS: dict[str, Any] = {
    "settings": toy.TINY | {"training.epochs": 4, "model.states": "embeddings + tfidf"},
    "members": 2,
    "device": "cpu",
    "precision": "fp32",
}


def test_folds_are_of_nearly_the_same_size_and_share_no_text() -> None:
    texts = [f"text {number}" for number in range(50)] + ["Text 7!", "TEXT 8"]
    folds = hashed_folds(texts, 4)
    assert sorted(Counter(folds[:50]).values()) == [12, 12, 13, 13]
    assert folds[50] == folds[7] and folds[51] == folds[8]
    assert hashed_folds(texts[::-1], 4) == folds[::-1]
    with pytest.raises(ValueError, match="at least 4 different texts for 4 folds, got 1"):
        hashed_folds(["a", "A!"], 4)


def test_each_text_is_labelled_by_a_model_that_did_not_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainings: dict[str, Any] = {}
    actual = best.train

    def recorded(data: Any, folder: Path, **options: Any) -> Any:
        trainings[folder.name] = (data, options)
        return actual(data, folder, **options)

    monkeypatch.setattr(best, "train", recorded)
    student = train_best_classifier(TRAIN, DEV, tmp_path / "work", tmp_path / "model", seed=5, **OPTIONS)
    assert list(trainings) == ["member-1", "member-2", "distilled", "plain"]
    texts = [(pair.source, pair.target) for pair in TRAIN]
    own = [set(trainings[name][1]["dev"]) for name in ("member-1", "member-2")]
    for name, fold in zip(("member-1", "member-2"), own, strict=True):
        assert not fold & set(trainings[name][0]) and fold | set(trainings[name][0]) == set(texts)
    assert not own[0] & own[1]
    assert [options["seed"] for _, options in trainings.values()] == [5, 6, 5, 5]
    assert trainings["plain"][0] == texts
    data = trainings["distilled"][0]
    assert isinstance(data, SoftLabelled) and list(data.texts) == texts
    rows = [row for row, text in enumerate(texts) if text in own[0]]
    member = regard.load(tmp_path / "work" / "member-1", "cpu", "fp32")
    expected = soft_labels(member, [texts[row][0] for row in rows], ["bad", "good"])
    assert torch.allclose(data.soft_labels.probabilities[rows], expected, atol=1e-6)
    assert student.card["scores"]["accuracy"] >= 90 and student.classify("The film is gripping.") == "good"


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train_best_classifier(TRAIN, DEV, tmp_path / "work", tmp_path / "model", **OPTIONS)
    actual = best.train
    begun: list[tuple[str, bool]] = []

    def stopping(data: Any, folder: Path, **options: Any) -> Any:
        begun.append((folder.name, options["resume"]))
        if len(begun) == 2:
            raise KeyboardInterrupt
        return actual(data, folder, **options)

    monkeypatch.setattr(best, "train", stopping)
    places = tmp_path / "again", tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        train_best_classifier(TRAIN, DEV, *places, **OPTIONS)
    parts = train_best_classifier(TRAIN, DEV, *places, **OPTIONS)
    assert begun[2:] == [("member-1", True), ("member-2", False), ("distilled", False), ("plain", False)]
    assert torch.equal(whole.logits(["The film is gripping."]), parts.logits(["The film is gripping."]))
    again = train_best_classifier(TRAIN, DEV, *places, **OPTIONS)  # it has ended: nothing is trained again
    assert begun[6:] == [("member-1", True), ("member-2", True)] and again.card == parts.card
    with pytest.raises(ValueError, match="begun with other data"):
        train_best_classifier(TRAIN[1:], DEV, *places, **OPTIONS)


@pytest.mark.parametrize("student_is_better", [False, True])
def test_dev_chooses_between_the_student_and_a_model_without_soft_labels(
    student_is_better: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The teachers contradict all labels; dev has the labels, or their opposites."""
    turned = {"good": "bad", "bad": "good"}

    def wrong(member: Any, texts: list[str], labels: list[str]) -> torch.Tensor:
        own = {pair.source: pair.target for pair in TRAIN}
        return torch.tensor([[float(turned[own[text]] == label) for label in labels] for text in texts])

    monkeypatch.setattr(best, "soft_labels", wrong)
    dev = [Pair(pair.source, turned[pair.target] if student_is_better else pair.target, pair.line) for pair in DEV]
    options = OPTIONS | {"settings": OPTIONS["settings"] | {"training.soft_labels": 1.0, "training.epochs": 8}}
    model = train_best_classifier(TRAIN, dev, tmp_path / "work", tmp_path / "model", **options)
    assert model.card["best"]["chosen"] == ("student" if student_is_better else "plain")
    assert (
        model.card["scores"]["accuracy"] >= 90 > 20 >= min(model.card["best"]["student"], model.card["best"]["plain"])
    )


def test_a_label_that_a_member_does_not_know_has_probability_0(tmp_path: Path) -> None:
    model = best.train(toy.TEXTS, tmp_path / "m", task="classify", settings=toy.TINY, device="cpu", precision="fp32")
    given = soft_labels(model, ["The film is gripping."], ["bad", "fair", "good"])
    assert given.shape == (1, 3) and given[0, 1] == 0 and given.sum().item() == pytest.approx(1, abs=1e-5)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="members: expected at least 2"):
        train_best_classifier(TRAIN, DEV, tmp_path / "w", tmp_path / "m", members=1)
