"""The beam size and the length penalty that are chosen on dev."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.config import folder as folders
from regard.metrics.translation import group, score
from regard.tasks.translation import chosen_search
from regard.tasks.translation.chosen_search import (
    BEAMS,
    PENALTIES,
    SearchChoice,
    choose_search,
    chosen_penalty,
    translations_by_penalty,
)
from regard.tasks.translation.final_scoring import ScoringEffort, final_results
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from tests.tasks.small import small
from tests.training import toy

SOURCES = [source for source, _ in toy.PAIRS]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """Trained so little that its hypotheses have many lengths."""
    out = tmp_path_factory.mktemp("penalty") / "model"
    settings = toy.LEARNS | {"training.epochs": 4}
    model = regard.train(toy.PAIRS, out, settings=settings, device="cpu", precision="fp32")
    assert isinstance(model, Translator)
    return model


def test_one_search_gives_what_a_search_with_each_penalty_gives(translator: Translator) -> None:
    texts = [*SOURCES[:30], "", " ".join(SOURCES[:5]), SOURCES[0].split()[0]]  # nothing, in parts, a single word
    by_penalty = translations_by_penalty(translator, texts, 4)
    assert list(by_penalty) == list(PENALTIES)
    for penalty, translations in by_penalty.items():
        assert translations == translator.translate(texts, Search(4, length_penalty=penalty)), penalty
    assert by_penalty[0.0] != by_penalty[2.0], "the penalties must make a difference here"


@pytest.mark.parametrize(
    ("scores", "sources", "expected"),
    [
        ({0.8: 20.0, 1.0: 20.0, 1.2: 20.0}, 1000, 1.0),
        ({0.8: 20.0, 1.0: 19.95, 1.2: 20.04}, 1000, 1.0),  # within the margin of 0.1
        ({0.8: 20.0, 1.0: 19.8, 1.2: 20.05}, 1000, 1.2),  # as near as 0.8, and better
        ({0.8: 20.06, 1.0: 19.8, 1.2: 20.05}, 1000, 0.8),
        ({0.0: 21.0, 1.0: 19.8, 2.0: 20.05}, 1000, 0.0),
        ({0.0: 20.1, 1.0: 19.8, 2.0: 20.05}, 16, 1.0),  # 0.5 is noise on 16 sources
        ({0.0: 21.0, 1.0: 19.8, 2.0: 20.05}, 16, 0.0),
    ],
)
def test_the_rule_prefers_1_within_noise(scores: dict[float, float], sources: int, expected: float) -> None:
    assert chosen_penalty(scores, sources) == expected


def test_training_chooses_writes_and_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(chosen_search, "chosen_penalty", lambda scores, sources: 0.4)
    watcher = toy.Watcher()
    model = small(tmp_path / "model", screen=watcher)
    assert model.recipe.search.length_penalty == model.search.length_penalty == 0.4
    assert folders.read_recipe(tmp_path / "model") == model.recipe
    assert "search.length_penalty = 0.4, chosen by chrF++ on dev" in watcher.text
    assert "length_penalty = 0.4" in (tmp_path / "model" / folders.LOG).read_text()
    card = json.loads((tmp_path / "model" / folders.CARD).read_text())
    tried = card["search"]["chrf"]
    assert set(tried) == {str(beam) for beam in BEAMS}
    assert all(set(by_penalty) == {str(each) for each in PENALTIES} for by_penalty in tried.values())
    assert card["scores"]["chrf"] == pytest.approx(tried[str(model.search.beam)]["0.4"])


def test_the_scores_are_those_of_evaluate(tmp_path: Path) -> None:
    dev = toy.pairs(20)
    model = small(tmp_path / "model", dev=[(pair.source, pair.target) for pair in dev])
    sources, references = group(dev)
    again = regard.load(tmp_path / "model", "cpu")
    assert isinstance(again, Translator) and again.search == model.search
    assert again.evaluate(dev).as_dict() == model.card["scores"]
    assert score(again.translate(sources), references).as_dict() == model.card["scores"]


def test_a_given_penalty_stays(tmp_path: Path) -> None:
    watcher = toy.Watcher()
    model = small(tmp_path / "model", settings={"search.length_penalty": 0.7}, screen=watcher)
    assert model.recipe.search.length_penalty == 0.7 and "length_penalty" not in watcher.text
    assert all(set(by_penalty) == {"0.7"} for by_penalty in model.card["search"]["chrf"].values())


def test_greedy_search_has_nothing_to_choose(tmp_path: Path) -> None:
    watcher = toy.Watcher()
    model = small(tmp_path / "model", settings={"search.beam": 1}, screen=watcher)
    assert model.recipe.search.length_penalty == 1.0 and "length_penalty" not in watcher.text


@pytest.mark.parametrize(
    ("scores", "sources", "expected"),
    [
        ({5: 20.0, 3: 20.05, 10: 20.05}, 1000, 5),  # within the margin of 0.1
        ({5: 20.0, 3: 20.2, 10: 20.25}, 1000, 3),  # better than 5, and faster than 10
        ({5: 20.0, 3: 19.0, 10: 20.25}, 1000, 10),
        ({5: 20.0, 3: 19.0, 10: 20.25}, 16, 5),  # 0.5 is noise on 16 sources
    ],
)
def test_the_rule_prefers_a_beam_of_5_within_noise(
    scores: dict[int, float], sources: int, expected: int, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_beam(*given: Any) -> SearchChoice:
        width = given[3]
        return SearchChoice(width, 1.0, [], {width: {1.0: scores[width]}})

    monkeypatch.setattr(chosen_search, "_choose_penalty", by_beam)
    choice = choose_search(translator, ["a"] * sources, [["b"]] * sources)
    assert choice.beam == expected and choice.chrf == {beam: {1.0: value} for beam, value in scores.items()}


@pytest.mark.parametrize(("seconds", "beams"), [(None, BEAMS), (900.0, BEAMS), (599.0, (5,))])
def test_a_short_run_tries_one_beam(seconds: float | None, beams: tuple[int, ...]) -> None:
    assert ScoringEffort.within(seconds).beams == beams


@pytest.mark.parametrize(("seconds", "count"), [(None, 9), (120.0, 9), (60.0, 1)])
def test_a_very_short_run_tries_one_penalty(seconds: float | None, count: int) -> None:
    penalties = ScoringEffort.within(seconds).penalties
    assert len(penalties) == count and 1.0 in penalties


def test_without_a_choice_the_defaults_are_used(translator: Translator) -> None:
    search = replace(translator.recipe.search, beam=None, length_penalty=None)
    unfinished = replace(translator, recipe=replace(translator.recipe, search=search))
    sources, references = group(toy.pairs(10))
    results = final_results(unfinished, sources, references, ScoringEffort.within(30.0))
    assert (results.beam, results.length_penalty, results.choice) == (5, 1.0, None)
    assert results.scores == score(translator.translate(sources, Search()), references)


def test_a_given_beam_stays(tmp_path: Path) -> None:
    watcher = toy.Watcher()
    model = small(tmp_path / "model", settings={"search.beam": 4}, screen=watcher)
    assert model.recipe.search.beam == 4 and "search.beam" not in watcher.text
    assert set(model.card["search"]["chrf"]) == {"4"}


def test_a_finished_run_with_its_chosen_penalty_is_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen_search, "chosen_penalty", lambda scores, sources: 0.4)
    small(tmp_path / "model")
    watcher = toy.Watcher()
    resumed = small(tmp_path / "model", resume=True, screen=watcher)
    assert "nothing to resume" in watcher.text and resumed.search.length_penalty == 0.4
    with pytest.raises(ValueError, match="begun with other recipe or settings"):
        small(tmp_path / "model", settings={"search.length_penalty": 0.6}, resume=True)
    with pytest.raises(ValueError, match="begun with other recipe or settings"):
        small(tmp_path / "model", settings={"search.beam": 3}, resume=True)


def test_a_run_that_ends_while_scoring_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the recipe and the card: the chosen penalty is in the recipe, and no scores in the card."""
    monkeypatch.setattr(chosen_search, "chosen_penalty", lambda scores, sources: 0.4)
    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "model", screen=toy.Watcher(interrupt_on="BLEU"))
    assert "scores" not in folders.read_card(tmp_path / "model")
    assert small(tmp_path / "model", resume=True).card["scores"]


def test_a_model_without_a_chosen_search_is_used_with_the_defaults(translator: Translator) -> None:
    search = replace(translator.recipe.search, beam=None, length_penalty=None)
    unfinished = replace(translator, recipe=replace(translator.recipe, search=search))
    assert (unfinished.search.beam, unfinished.search.length_penalty) == (5, 1.0)
