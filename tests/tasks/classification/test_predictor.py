"""A classifier in use."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.evidence.of_label import examined_label
from regard.look.trace import Trace
from regard.tasks.classification.labelling import MAX_TRACED_WORDS
from regard.tasks.classification.predictor import Classifier, fitted_temperature
from regard.tasks.registry import TRANSLATION, load_for
from regard.text.pairs import Pair
from tests.training import toy_labels as toy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("classifier") / "m"
    regard.train(toy.TEXTS, out, task="classify", settings=toy.TINY, device="cpu", precision="fp32")
    return out


@pytest.fixture(scope="module")
def classifier(folder: Path) -> Classifier:
    result = regard.load(folder, device="cpu", precision="fp32")
    assert isinstance(result, Classifier)
    return result


def test_probabilities(classifier: Classifier) -> None:
    answers = classifier.answers(["The film is gripping.", "", "Her play is boring."])
    for answer in answers:
        shares = list(answer.probabilities.values())
        assert sum(shares) == pytest.approx(1, abs=1e-6) and shares == sorted(shares, reverse=True)
        assert set(answer.probabilities) == {"good", "bad"} and answer.trace is None
    assert [answer.label for answer in answers[::2]] == ["good", "bad"]
    logits = classifier.logits(["The film is gripping."])
    expected = torch.softmax(logits[0], -1)[classifier.labels.index("good")]
    assert answers[0].probability == pytest.approx(float(expected), abs=1e-6)


def test_calibrated_probabilities_are_those_at_the_temperature(classifier: Classifier) -> None:
    text = "The film is gripping."
    plain, corrected = (classifier.answers([text], calibrated=each)[0] for each in (False, True))
    temperature = classifier.card["temperature"]
    odds = [np.log(answer.probabilities["good"] / answer.probabilities["bad"]) for answer in (plain, corrected)]
    assert odds[1] == pytest.approx(odds[0] / temperature, rel=1e-3)
    classifier.card["temperature"] = None
    try:
        with pytest.raises(ValueError, match="no temperature"):
            classifier.answers([text], calibrated=True)
    finally:
        classifier.card["temperature"] = temperature


@pytest.mark.parametrize("wanted", [0.3, 1.0, 4.0])
def test_the_temperature_is_found_again(wanted: float) -> None:
    """Labels drawn from softmax(z): of logits z · T the best temperature is T."""
    torch.manual_seed(0)
    logits = torch.randn(20_000, 4)
    gold = torch.distributions.Categorical(logits=logits).sample()
    assert fitted_temperature(logits * wanted, gold) == pytest.approx(wanted, rel=0.05)
    scores = [
        float(torch.nn.functional.cross_entropy(logits * wanted / t, gold))
        for t in (0.97 * fitted_temperature(logits * wanted, gold), fitted_temperature(logits * wanted, gold))
    ]
    assert scores[1] <= scores[0]


def test_the_trace_looks_from_the_label_at_the_words(classifier: Classifier) -> None:
    answer = classifier.answers(["The  film is GRIPPING, they say."], details=True)[0]
    trace = answer.trace
    assert trace is not None and trace.source.text == "The film is GRIPPING, they say."
    assert trace.target.text == "good" and [each.name for each in trace.attentions] == ["pool"]
    assert trace.attentions[0].weights.shape == (1, 2, 1, len(trace.source.pieces))  # two judges
    _, words, weights = trace.by_words()
    assert weights.shape == (1, len(words)) and weights.sum() == pytest.approx(1, abs=1e-4)
    assert words[int(weights.argmax())].text == "GRIPPING"
    assert [each.text for each in trace.candidates] == ["good", "bad"]
    assert trace.steps[0].probability == pytest.approx(answer.probability)
    assert Trace.from_dict(json.loads(json.dumps(trace.as_dict()))).target.text == "good"


def test_where_words_look_at_one_another_the_trace_has_it(tmp_path: Path) -> None:
    settings = {**toy.TINY, "model.states": "embeddings + attention", "model.layers": 2, "encoder.pattern": "window(1)"}
    regard.train(toy.TEXTS, tmp_path / "m", task="classify", settings=settings | {"training.epochs": 1}, device="cpu")
    classifier = regard.load(tmp_path / "m", device="cpu", precision="fp32")
    assert isinstance(classifier, Classifier)
    texts = ["The film is gripping, they say.", "Dull."]
    traces = [answer.trace for answer in classifier.answers(texts, details=True)]
    for trace in traces:
        assert trace is not None and [each.name for each in trace.attentions] == ["pool", "encoder"]
        weights, size = trace.attentions[1].weights, len(trace.source.pieces)
        assert weights.shape == (2, 4, size, size)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        far = np.abs(np.arange(size)[:, None] - np.arange(size)) > 1
        assert not weights[..., far].any()
    (alone,) = classifier.answers([texts[1] + " word" * MAX_TRACED_WORDS], details=True)
    assert alone.trace is not None and [each.name for each in alone.trace.attentions] == ["pool"]


def test_labels_that_it_does_not_know_are_refused_by_name(classifier: Classifier) -> None:
    pairs = [Pair("The film is gripping.", "good", 1), Pair("Her play is boring.", "dull", 2)]
    refusal = r"^labels: expected those of the model \(bad, good\), got dull in 1 of 2 texts$"
    with pytest.raises(ValueError, match=refusal):
        classifier.evaluate(pairs)
    assert classifier.evaluate(pairs, allow_unknown=True).accuracy == 50
    many = [Pair("x", f"label {number:02}", number) for number in range(20)]
    with pytest.raises(ValueError, match=r"label 07 and 12 more in 20 of 20 texts$"):
        classifier.evaluate(many)


def test_gradients_are_taken_without_cudnn_in_evaluation_mode(classifier: Classifier) -> None:
    (answer,) = classifier.answers(["The film is gripping."], details=True)
    assert answer.trace is not None
    seen = []

    def note(module: torch.nn.Module, *_: object) -> None:
        if torch.is_grad_enabled():
            seen.append((torch.backends.cudnn.enabled, any(each.training for each in module.modules())))

    handle = classifier.model.register_forward_pre_hook(note)
    try:
        examined_label(classifier, answer.trace)
    finally:
        handle.remove()
    assert seen == [(False, False)] and torch.backends.cudnn.enabled


def test_evidence_points_at_the_word_that_decides(classifier: Classifier) -> None:
    trace = classifier.answers(["The film is really gripping."], details=True)[0].trace
    assert trace is not None
    result = examined_label(classifier, trace)
    assert [each.name for each in result.evidence] == ["leave one out", "gradient"]
    place = [word.text for word in trace.source.words].index("gripping")
    for each in result.evidence:
        assert each.values.shape == (1, len(trace.source.words)) and each.values[0].argmax() == place
    without = classifier.logits(["The film is really ."]).log_softmax(-1)
    whole = classifier.logits([trace.source.text]).log_softmax(-1)
    column = classifier.labels.index("good")
    assert result.evidence[0].values[0, place] == pytest.approx(float((whole - without)[0, column]), abs=1e-5)


def test_a_text_gets_the_same_answer_in_any_company(classifier: Classifier) -> None:
    texts = [text for text, _ in toy.TEXTS[:70]] + ["", "Long " * 500 + "boring."]
    together = classifier.answers(texts)
    for number in (0, 40, 70, 71):
        alone = classifier.answers([texts[number]])[0]
        assert alone.probabilities["good"] == pytest.approx(together[number].probabilities["good"], abs=1e-5)


def test_evaluate_drops_nothing(classifier: Classifier) -> None:
    pairs = [Pair(text, label, 1) for text, label in [*toy.TEXTS[:3], ("", "good"), ("The film", "new")]]
    scores = classifier.evaluate(pairs, allow_unknown=True)
    assert scores.texts == 5 and scores.labels == ["bad", "good", "new"]
    assert classifier.evaluate(pairs, calibrated=True, allow_unknown=True).accuracy == scores.accuracy


def test_loading_by_the_card(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a translator, got a classifier; `regard classify` uses it"):
        load_for(TRANSLATION, folder)
    card = json.loads((folder / "card.json").read_text())
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    (copy / "card.json").write_text(json.dumps({**card, "labels": ["good", "bad", "more"]}))
    with pytest.raises(ValueError, match="output"):
        regard.load(copy)
    (copy / "card.json").write_text(json.dumps({**card, "labels": None}))
    with pytest.raises(ValueError, match="damaged: expected `labels`"):
        regard.load(copy)


def test_only_texts(classifier: Classifier) -> None:
    with pytest.raises(TypeError, match="text: expected a text or a list of texts"):
        classifier.classify([3])  # type: ignore[list-item]


def test_logits_that_are_not_finite_are_an_error(folder: Path) -> None:
    classifier = regard.load(folder, device="cpu", precision="fp32")
    assert isinstance(classifier, Classifier)
    with torch.no_grad():
        for parameter in classifier.model.parameters():
            parameter.fill_(-3e38)
    text, label = toy.TEXTS[0]
    for use in (lambda: classifier.classify(text), lambda: classifier.evaluate([Pair(text, label, 1)])):
        with pytest.raises(ValueError, match="computes NaN or infinite values"):
            use()
