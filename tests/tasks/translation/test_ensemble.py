"""Ensembles of trained translators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.evidence.of_translation import examined
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from tests.training import toy

SOURCES = [source for source, _ in toy.PAIRS]


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> list[Translator]:
    here = tmp_path_factory.mktemp("ensemble")
    options = {"device": "cpu", "precision": "fp32"}
    rnn = regard.train(toy.PAIRS, here / "rnn", settings=toy.LEARNS, **options)  # type: ignore[arg-type]
    attends = toy.ATTENDS | {"training.epochs": 5}
    transformer = regard.train(toy.PAIRS, here / "two", recipe="transformer", settings=attends, **options)  # type: ignore[arg-type]
    assert isinstance(rnn, Translator) and isinstance(transformer, Translator)
    return [rnn, transformer]


def test_log_probabilities_are_those_of_the_mean(members: list[Translator]) -> None:
    both = members[0].ensemble(members[1])
    targets = [target for _, target in toy.PAIRS[:5]]
    of_members = [member.force_decode(SOURCES[:5], targets) for member in members]
    for row, trace in enumerate(both.force_decode(SOURCES[:5], targets)):
        own = np.array([[step.probability for step in each[row].steps] for each in of_members])
        np.testing.assert_allclose([step.probability for step in trace.steps], own.mean(0), atol=1e-5)
        np.testing.assert_allclose(trace.by_words()[2].sum(1), 1, atol=1e-4)


def test_an_ensemble_of_one_model_is_that_model(members: list[Translator]) -> None:
    """Twice the same member: the mean is its own distribution."""
    twice = members[0].ensemble(members[0])
    for search in (Search(), Search(beam=1), Search(n_best=3)):
        mine, own = twice.answers(SOURCES[:20], search), members[0].answers(SOURCES[:20], search)
        assert [[x.text for x in each.translations] for each in mine] == [
            [x.text for x in each.translations] for each in own
        ]
        assert mine[0].translations[0].score == pytest.approx(own[0].translations[0].score, abs=1e-4)


def test_all_uses_of_a_translator(members: list[Translator]) -> None:
    both = members[0].ensemble(members[1])
    assert both.translate(SOURCES[0]) == both.translate([SOURCES[0]])[0]
    (answer,) = both.answers(SOURCES[:1], Search(n_best=2), details=True)
    trace = answer.translations[0].traces[0]
    assert trace.steps and len(trace.candidates) > 1 and {each.name for each in trace.attentions} > {"cross"}
    torch.manual_seed(1)
    assert both.translate(SOURCES[0], Search(sample=True))
    assert both.translate(SOURCES[0], prefix="सीता").startswith("सीता")
    assert both.evaluate(toy.pairs(10)).sources == 10
    evidence = examined(both, trace)
    assert [each.name for each in evidence.evidence] == ["leave one out", "gradient"] and len(evidence.altered) == 3
    assert all(np.isfinite(each.values).all() for each in evidence.evidence)


def test_gradients_are_summed_over_the_members(members: list[Translator]) -> None:
    """Of an ensemble of one model twice, each of two embeddings has half of its gradient."""
    (trace,) = members[0].force_decode(SOURCES[:1], [toy.PAIRS[0][1]])
    alone, twice = (examined(each, trace).evidence[1].values for each in (members[0], members[0].ensemble(members[0])))
    np.testing.assert_allclose(twice, alone, atol=1e-5)


def test_the_card_is_that_of_all(members: list[Translator]) -> None:
    both = members[0].ensemble(members[1])
    assert both.card["parameters"] == sum(member.card["parameters"] for member in members)
    assert both.card["seed"] == [1, 1] and "scores" not in both.card and "scores" in members[0].card
    three = both.ensemble(members[0])
    assert three.card["seed"] == [1, 1, 1] and len(three.model.members) == 3  # type: ignore[union-attr, arg-type]


def test_members_that_do_not_fit_are_refused(members: list[Translator], tmp_path: Path) -> None:
    other = regard.train(toy.PAIRS, tmp_path / "other", settings=toy.TINY | {"vocabulary.size": 40}, device="cpu")
    assert isinstance(other, Translator)
    with pytest.raises(ValueError, match=r"rnn and .*other: expected the same vocabularies"):
        members[0].ensemble(other)
    with pytest.raises(ValueError, match="expected the same precision, got fp32 and auto"):
        members[0].ensemble(regard.load(members[1].name, "cpu"))  # type: ignore[arg-type]
