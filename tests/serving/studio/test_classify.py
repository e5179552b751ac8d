"""Labels of texts, what they looked at, and how good a classifier is."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard
from regard.text.pairs import Pair
from tests.serving.studio.asking import get, post, send, tsv
from tests.training import toy_labels as toy

TEXT = "The film is really dreadful, they say."


@pytest.fixture(scope="module")
def classifier(classifier_folder: Path) -> regard.Classifier:
    model = regard.load(classifier_folder, "cpu")
    assert isinstance(model, regard.Classifier)
    return model


def test_probabilities_are_calibrated(work_address: str, classifier: regard.Classifier) -> None:
    result = post(work_address, "/classify", text=TEXT)
    (expected,) = classifier.answers([TEXT], calibrated=True)
    assert result["label"] == expected.label == "bad" and result["calibrated"]
    assert dict(result["probabilities"]) == pytest.approx(expected.probabilities, abs=1e-5)
    (trace,) = result["content"]["traces"][0]
    assert trace["answer"] == "label" and trace["evidence"] == []


def test_evidence_on_demand(work_address: str) -> None:
    (trace,) = post(work_address, "/classify", text=TEXT, evidence=True)["content"]["traces"][0]
    assert [each["name"] for each in trace["evidence"]] == ["leave one out", "gradient"]
    too_long = post(work_address, "/classify", text="word " * 500, evidence=True)
    assert too_long == (422, "evidence: expected a text of at most 400 words, got 500")


def test_the_card(work_address: str, classifier: regard.Classifier) -> None:
    result = get(work_address, "/classify/card?model=judge")
    assert dict(result["card"]["lines"])["Scores"].startswith("accuracy")
    assert result["scores"]["confusion"] == classifier.card["scores"]["confusion"]
    assert [row["label"] for row in result["scores"]["by_label"]] == classifier.labels
    assert sum(row["texts"] for row in result["scores"]["by_label"]) == result["scores"]["texts"]


def test_a_test_set(work_address: str, classifier: regard.Classifier) -> None:
    texts = [*toy.TEXTS[:70], (TEXT, "good")]
    result = send(work_address, "/classify/evaluate", [("test.tsv", tsv(texts))], model="judge")
    expected = classifier.evaluate([Pair(*pair, 1) for pair in texts], calibrated=True)
    assert result["scores"]["confusion"] == expected.confusion
    assert result["scores"]["log_loss"] == pytest.approx(expected.log_loss, abs=1e-5)
    mistake = next(each for each in result["mistakes"] if each["text"] == TEXT)
    assert (mistake["expected"], mistake["predicted"], mistake["line"]) == ("good", "bad", 71)
    sure = [each["probability"] for each in result["mistakes"]]
    assert sure == sorted(sure, reverse=True)


def test_mistakes_are_named(work_address: str) -> None:
    assert (
        "labels: expected those of the model" in send(work_address, "/classify/evaluate", [("a.tsv", "x\tother\n")])[1]
    )
    assert post(work_address, "/classify", text="")[0] == 422
    assert post(work_address, "/classify", text="x" * 10_001)[0] == 413
    assert post(work_address, "/classify", text="x", model="toy")[0] == 422
