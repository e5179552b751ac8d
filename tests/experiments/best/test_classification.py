"""A classifier whose members are weighted by texts that they did not see: folds, resuming, and what comes out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.experiments.best import classification as best
from regard.experiments.best.classification import hashed_folds, member_logits, train_best_classifier
from regard.experiments.best.stacking import stacked
from regard.models.documents.classifier import ClassifierOptions
from regard.text.pairs import Pair
from tests.training import toy_labels as toy

PAIRS = [Pair(text, label, line) for line, (text, label) in enumerate(toy.TEXTS, 1)]
TRAIN, DEV = PAIRS[20:], PAIRS[:20]
KINDS = "embeddings + convolution + tfidf"
OPTIONS: dict[str, Any] = {
    "settings": toy.TINY | {"training.epochs": 4, "model.states": f"{KINDS} + embeddings"},
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


def test_the_weights_come_from_models_that_did_not_see_the_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainings: dict[str, Any] = {}
    fitted: list[Any] = []
    train, stack = best.train, best.stacked

    def recorded(data: Any, folder: Path, **options: Any) -> Any:
        trainings[folder.name] = (data, options)
        return train(data, folder, **options)

    monkeypatch.setattr(best, "train", recorded)
    monkeypatch.setattr(best, "stacked", lambda *given: fitted.append(given) or stack(*given))
    model = train_best_classifier(TRAIN, DEV, tmp_path / "work", tmp_path / "model", seed=5, **OPTIONS)
    assert list(trainings) == ["member-1", "member-2", "stacked"]
    texts = [(pair.source, pair.target) for pair in TRAIN]
    own = [set(trainings[name][1]["dev"]) for name in ("member-1", "member-2")]
    for name, fold in zip(("member-1", "member-2"), own, strict=True):
        assert not fold & set(trainings[name][0]) and fold | set(trainings[name][0]) == set(texts)
    assert not own[0] & own[1] and trainings["stacked"][0] == texts
    assert [options["seed"] for _, options in trainings.values()] == [5, 6, 5]
    ((kinds, logits, gold, trained),) = fitted
    assert kinds == ["embeddings", "convolution", "embeddings", "tfidf"] and trained == kinds[:3]
    assert gold.tolist() == [int(pair.target == "good") for pair in TRAIN]
    rows = [row for row, text in enumerate(texts) if text in own[0]]
    first = regard.load(tmp_path / "work" / "member-1", "cpu", "fp32")
    assert torch.allclose(logits[:, rows], first.member_logits([texts[row][0] for row in rows]), atol=1e-5)
    chosen = stacked(kinds, logits, gold, trained)
    assert (model.recipe.model.states, model.recipe.model.member_weights) == (chosen.states, chosen.weights)
    assert model.card["best"] == chosen._asdict()
    assert model.card["scores"]["accuracy"] >= 90 and model.classify("The film is gripping.") == "good"


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
    assert begun[2:] == [("member-1", True), ("member-2", False), ("stacked", False)]
    assert torch.equal(whole.logits(["The film is gripping."]), parts.logits(["The film is gripping."]))
    again = train_best_classifier(TRAIN, DEV, *places, **OPTIONS)  # it has ended: nothing is trained again
    assert begun[5:] == [("member-1", True), ("member-2", True)] and again.card == parts.card
    with pytest.raises(ValueError, match="begun with other data"):
        train_best_classifier(TRAIN[1:], DEV, *places, **OPTIONS)


def test_the_members_are_those_of_the_user_or_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[Any] = []

    def stops(*given: Any, **options: Any) -> None:
        settings.append(options["settings"])
        raise KeyboardInterrupt

    monkeypatch.setattr(best, "train", stops)
    for number, states in enumerate(("embeddings + tfidf", None)):
        given = {} if states is None else {"model.states": states}
        with pytest.raises(KeyboardInterrupt):
            train_best_classifier(TRAIN, DEV, tmp_path / str(number), tmp_path / "model", settings=given)
        assert settings[-1]["model.states"] == (states or best.STATES)
    assert len(ClassifierOptions(states=best.STATES).members) == 7


def test_a_label_that_a_model_does_not_know_has_a_low_logit(tmp_path: Path) -> None:
    model = best.train(toy.TEXTS, tmp_path / "m", task="classify", settings=toy.TINY, device="cpu", precision="fp32")
    given = member_logits(model, ["The film is gripping."], ["bad", "fair", "good"])
    own = model.member_logits(["The film is gripping."])
    assert given.shape == (len(own), 1, 3) and torch.equal(given[..., [0, 2]], own)
    assert torch.equal(given[..., 1], own.amin(-1) - best.UNKNOWN_MARGIN)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="members: expected at least 2"):
        train_best_classifier(TRAIN, DEV, tmp_path / "w", tmp_path / "m", members=1)
    weights = {"model.states": "embeddings + tfidf", "model.member_weights": "0.5 + 0.5"}
    with pytest.raises(ValueError, match="member_weights: expected none, because best chooses them; got '0"):
        train_best_classifier(TRAIN, DEV, tmp_path / "w", tmp_path / "m", settings=weights)
