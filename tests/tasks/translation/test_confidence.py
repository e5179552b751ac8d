"""The confidence of translations, by every search, for recurrent models and Transformers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import regard
from regard.tasks.translation.answer import Answer
from regard.tasks.translation.calibration import rated_sentences
from regard.tasks.translation.confidence import SENTENCE_FEATURES, ConfidenceModel
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.regression import Linear
from regard.tasks.translation.word_features import FEATURES
from tests.training import toy

SOURCES = [source for source, _ in toy.PAIRS]
TEXTS = [*SOURCES[:6], "", " ".join(SOURCES[:5]), "unseen: 漢字 😀"]


@pytest.fixture(scope="module", params=["rnn", "transformer"])
def translator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Translator:
    out = tmp_path_factory.mktemp("confidence") / request.param
    settings = toy.RECIPES[request.param] | {"training.epochs": {"rnn": 12, "transformer": 5}[request.param]}
    model = regard.train(
        toy.PAIRS, out, recipe=request.param, settings=settings, device="cpu", precision="fp32", threads=1
    )
    assert isinstance(model, Translator)
    return model


def check(answers: list[Answer]) -> None:
    """Each translation and each of its words has a probability."""
    for answer in answers:
        for each in answer.translations:
            values = [value for _, value in each.word_confidence]
            words = [word.text for trace in each.traces for word in trace.target.text_words]
            assert [word for word, _ in each.word_confidence] == words
            assert all(0 <= value <= 1 for value in values)
            assert each.confidence is not None and 0 <= each.confidence <= 1
            assert values or each.confidence == float(not answer.source)


@pytest.mark.parametrize(
    "options",
    [{}, {"beam": 1}, {"n_best": 3}, {"mbr": 4}, {"mbr": 4, "n_best": 2}, {"sample": True, "n_best": 2}],
    ids=str,
)
def test_every_search(translator: Translator, options: dict[str, Any]) -> None:
    answers = translator.answers(TEXTS, replace(translator.search, **options), confidence=True)
    check(answers)
    assert max(len(answer.translations) for answer in answers) == options.get("n_best", 1)


def test_the_translations_stay_as_they_are(translator: Translator) -> None:
    plain, rated = translator.answers(TEXTS), translator.answers(TEXTS, confidence=True)
    assert [answer.text for answer in plain] == [answer.text for answer in rated]
    assert all(each.confidence is None for answer in plain for each in answer.translations)
    assert all(not trace.confidence for answer in plain for trace in answer.translations[0].traces)


def test_the_confidence_does_not_depend_on_other_texts_or_on_details(translator: Translator) -> None:
    together = translator.answers(TEXTS, confidence=True, details=True)
    for text, answer in zip(TEXTS, together, strict=True):
        (alone,) = translator.answers([text], confidence=True)
        assert alone.text == answer.text
        assert alone.translations[0].confidence == pytest.approx(answer.translations[0].confidence, abs=1e-3)


def test_right_words_have_more_confidence_than_wrong_ones(translator: Translator) -> None:
    sentences = rated_sentences(
        translator, translator.answers(SOURCES, confidence=True), [[target] for _, target in toy.PAIRS]
    )
    right = np.array([value for each in sentences for value in each.right])
    values = np.array([value for each in sentences for value in each.words])
    assert 0.1 < right.mean() < 0.9, "some must be right and some wrong"
    assert values[right].mean() > values[~right].mean() + 0.1


def test_parts_of_a_long_text_have_their_own_words(translator: Translator) -> None:
    (answer,) = translator.answers([" ".join(SOURCES[:5])], confidence=True)
    assert len(answer.translations[0].traces) == 5
    assert all(len(trace.confidence) == len(trace.target.text_words) for trace in answer.translations[0].traces)


def test_an_ensemble_uses_the_first_ones_calibration(translator: Translator) -> None:
    check(translator.ensemble(translator).answers(TEXTS, confidence=True))


def test_cards_without_confidence_or_of_another_version(translator: Translator) -> None:
    entry = translator.card["confidence"]

    def refused(confidence: Any) -> str:
        card = {name: value for name, value in translator.card.items() if name != "confidence"}
        other = replace(translator, card=card | ({} if confidence is None else {"confidence": confidence}))
        with pytest.raises(ValueError, match="confidence") as error:
            other.answers(TEXTS, confidence=True)
        return str(error.value)

    assert "has no calibrated confidence; `regard calibrate" in refused(None)
    word = entry["word"]
    fewer = {name: value for name, value in word["weights"].items() if name != FEATURES[0]}
    for damaged in (
        *(3, {}, entry | {"word": 3}, entry | {"word": word | {"bias": "x"}}, entry | {"sentence": {"bias": 1.0}}),
        *(entry | {"word": word | {"weights": fewer}}, entry | {"word": word | {"bias": float("nan")}}),
        entry | {"word": word | {"weights": word["weights"] | {"more": 1.0}}},
    ):
        assert "its confidence is damaged, or of another version" in refused(damaged)


def test_the_card_has_what_the_model_computes_with(translator: Translator) -> None:
    model = ConfidenceModel.from_card(translator.card, "")
    assert ConfidenceModel.from_card({"confidence": model.as_dict()}, "").as_dict() == model.as_dict()
    assert model.rate(np.zeros((0, len(FEATURES)))) == (0.0, [])


def test_extreme_features_have_finite_probabilities() -> None:
    one = Linear(0.0, np.full(len(FEATURES), 1e6))
    model = ConfidenceModel(one, Linear(0.0, np.full(len(SENTENCE_FEATURES), 1e6)))
    high, low = (model.rate(np.full((1, len(FEATURES)), sign * 1e6)) for sign in (1, -1))
    assert high.fraction > 0.999 and high.words[0] > 0.999 and low.fraction < 0.001 and low.words[0] < 0.001
