"""The fitted confidence of words and sentences, and what the card says of it."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import regard
from regard.config import folder as folders
from regard.metrics.confidence import calibration_error
from regard.metrics.rank_correlation import spearman
from regard.metrics.translation import group
from regard.tasks.registry import TRANSLATION
from regard.tasks.spec import TimeLimit
from regard.tasks.translation.calibration import RatedWords, fitted_confidence
from regard.tasks.translation.confidence import SENTENCE_FEATURES
from regard.tasks.translation.final_scoring import ScoringEffort, final_results
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.regression import sigmoid
from regard.tasks.translation.word_features import FEATURES
from tests.tasks.small import small
from tests.training import toy

SENTENCE_PLACE = FEATURES.index("sentence_chrf")


def drawn(sentences: int, seed: int = 0) -> list[RatedWords]:
    """Sentences of five words, right with a probability that follows from the features, and with a chrF++ to match."""
    draw, result = np.random.default_rng(seed), []
    for _ in range(sentences):
        features = draw.normal(3, 1, (5, len(FEATURES)))
        features[:, SENTENCE_PLACE] = features[0, SENTENCE_PLACE]
        logits = (features - 3)[:, [0, 1, SENTENCE_PLACE]] @ np.array([1.5, -1.0, 1.0]) + 0.3
        right = (draw.random(5) < sigmoid(logits)).astype(float)
        result.append(RatedWords(features, right, 100 * float(right.mean())))
    return result


def test_held_out_values_are_calibrated_and_order_the_sentences() -> None:
    sentences = drawn(600)
    right = np.concatenate([each.right for each in sentences])
    fractions = np.array([each.right.mean() for each in sentences])
    fitted = fitted_confidence(sentences)
    assert fitted.words is not None and fitted.sentences is not None
    assert calibration_error(fitted.words, right) < 0.04
    assert calibration_error(fitted.sentences, fractions) < 0.04
    assert (spearman(fitted.sentences, fractions) or 0) > 0.4
    others = drawn(400, seed=1)
    rated = [fitted.model.rate(each.features) for each in others]
    words = np.array([value for each in rated for value in each.words])
    assert calibration_error(words, np.concatenate([each.right for each in others])) < 0.05
    values = np.array([each.fraction for each in rated])
    assert calibration_error(values, np.array([each.right.mean() for each in others])) < 0.06


@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_words_that_are_all_alike_and_features_that_never_change(outcome: float) -> None:
    sentences = [RatedWords(np.ones((4, len(FEATURES))), np.full(4, outcome), 100 * outcome)] * 20
    fitted = fitted_confidence(sentences)
    assert set(fitted.model.word.weights.tolist()) == {0.0}
    rated = fitted.model.rate(sentences[0].features)
    assert np.abs(np.array([rated.fraction, *rated.words]) - outcome).max() < 0.05
    assert fitted.sentences is not None and np.isfinite(fitted.sentences).all()


@pytest.mark.parametrize("count", [1, 2, 9])
def test_with_few_sentences_the_value_is_the_mean_of_the_words(count: int) -> None:
    sentences = drawn(count)
    fitted = fitted_confidence(sentences)
    rated = fitted.model.rate(sentences[0].features)
    assert rated.fraction == pytest.approx(np.mean(rated.words), abs=2e-3)
    assert (fitted.words is None) == (count == 1) and fitted.sentences is None


def test_training_calibrates_on_dev_and_the_card_says_how(tmp_path: Path) -> None:
    model = small(tmp_path / "model", settings=toy.LEARNS | {"training.epochs": 10})
    entry = json.loads((tmp_path / "model" / folders.CARD).read_text())["confidence"]
    assert entry == model.card["confidence"]
    assert entry["data"] == "dev" and entry["sources"] == 16 and entry["words"] > 16
    assert "logistic regression" in entry["method"] and "16 samples" in entry["method"]
    assert set(entry["word"]["weights"]) == set(FEATURES) and 0 <= entry["words_right"] <= 1
    assert set(entry["sentence"]["weights"]) == set(SENTENCE_FEATURES)
    assert 0 <= entry["word_error"] <= 1 and 0 <= entry["sentence_error"] <= 1
    (answer,) = model.answers(["The boy sees a mango."], confidence=True)
    assert answer.translations[0].confidence is not None


def test_at_most_so_many_sources_are_used(tmp_path: Path) -> None:
    model = small(tmp_path / "model")
    sources, references = group(toy.pairs(40))
    results = final_results(model, sources, references, ScoringEffort(calibrated=5))
    assert results.confidence is not None and results.confidence["sources"] <= 5
    assert results.scores.sources == 40


@pytest.mark.parametrize(("seconds", "expected"), [(None, 300), (3600.0, 300), (120.0, 120), (6.0, 30)])
def test_a_short_run_uses_fewer_sources(seconds: float | None, expected: int, tmp_path: Path) -> None:
    model = small(tmp_path / "model")
    with patch("regard.tasks.translation.spec.final_results", wraps=final_results) as used:
        TRANSLATION.score(model, toy.pairs(5), print, None if seconds is None else TimeLimit(seconds, None))
    assert used.call_args.args[3].calibrated == expected


def test_a_model_is_calibrated_again_on_other_pairs(tmp_path: Path) -> None:
    small(tmp_path / "model", settings=toy.LEARNS | {"training.epochs": 10})
    pairs = toy.write_tsv(tmp_path / "pairs.tsv", toy.PAIRS[:30])
    entry = TRANSLATION.calibrate(tmp_path / "model", [pairs], False, None, "cpu", "fp32")
    again = regard.load(tmp_path / "model", "cpu")
    assert isinstance(again, Translator) and again.card["confidence"] == entry
    assert (entry["data"], entry["sources"]) == ("pairs.tsv", 30)


def test_a_training_that_has_not_ended_is_not_calibrated(tmp_path: Path) -> None:
    small(tmp_path / "model")
    card = folders.read_card(tmp_path / "model")
    folders.write_card(tmp_path / "model", {key: value for key, value in card.items() if key != "scores"})
    pairs = toy.write_tsv(tmp_path / "pairs.tsv")
    with pytest.raises(ValueError, match="expected a model whose training has ended"):
        TRANSLATION.calibrate(tmp_path / "model", [pairs], False, None, "cpu", "fp32")
