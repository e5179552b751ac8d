"""Minimum-Bayes-risk decoding of a trained translator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from tests.tasks.small import small
from tests.training import toy

SOURCES = [source for source, _ in toy.PAIRS]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return small(tmp_path_factory.mktemp("mbr") / "model", settings=toy.LEARNS, precision="fp32")


def test_answers_have_expected_utilities_traces_and_candidates(translator: Translator) -> None:
    (answer,) = translator.answers(SOURCES[:1], Search(mbr=8, n_best=2), details=True)
    first, second = answer.translations
    assert 100 >= first.score >= second.score >= 0 > first.log_probability
    trace = first.traces[0]
    assert trace.target.text == first.text and trace.steps
    assert trace.candidates[0].text == first.text and trace.candidates[0].score == first.score
    total = float(np.log([step.probability for step in trace.steps]).sum())
    assert total == pytest.approx(first.log_probability, abs=1e-3)


def test_seeded_and_the_same_whatever_the_neighbours(translator: Translator) -> None:
    search = Search(mbr=6)
    together = translator.translate([*SOURCES[:20], "", " ".join(SOURCES[:5])], search)
    assert together == translator.translate([*SOURCES[:20], "", " ".join(SOURCES[:5])], search)
    assert together[:20] == [translator.translate(source, search) for source in SOURCES[:20]]
    texts = [
        [each.text for each in answer.translations] for answer in translator.answers(SOURCES, replace(search, n_best=5))
    ]
    others = translator.answers(SOURCES, replace(search, n_best=5, seed=2))
    assert texts != [[each.text for each in answer.translations] for answer in others]


def test_the_recipe_turns_it_on(tmp_path: Path) -> None:
    model = small(tmp_path / "model", settings={"search.mbr": 4})
    assert model.search.mbr == 4 and model.recipe.search.length_penalty is not None
    assert model.evaluate(toy.pairs()).sources == 80
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert card["scores"]["sources"] == 16


def test_an_ensemble(translator: Translator) -> None:
    assert len(translator.ensemble(translator).translate(SOURCES[:3], Search(mbr=4))) == 3
