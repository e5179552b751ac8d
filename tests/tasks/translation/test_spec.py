"""What a recipe leaves open and the device decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regard.config.recipe import Recipe, TrainingRecipe
from regard.config.recipe_text import read_recipe
from regard.config.sizes import Budget, consistency
from regard.experiments.best.translation import best_recipe
from regard.tasks.registry import TRANSLATION
from regard.tasks.spec import TrainingData
from regard.text.pairs import Pair

GPU, CPU = Budget(True, None), Budget(False, None)


@pytest.mark.parametrize("budget", [GPU, CPU])
def test_open_consistency_follows_the_device(budget: Budget) -> None:
    chosen = TRANSLATION.completed(read_recipe("transformer"), 2_500, budget, None)
    assert chosen.training.consistency == 5.0 * budget.on_gpu


@pytest.mark.parametrize(("words", "kind"), [(3, "rnn"), (9, "transformer")])
def test_the_kind_follows_the_words_of_the_data(words: int, kind: str) -> None:
    pairs = [Pair(" ".join(["a"] * words), "b", 1)] * 6_000
    data = TrainingData(pairs, [], "pairs", len(pairs), "")
    assert TRANSLATION.recipe_for({}, data, GPU, None).model.kind == kind
    begun = read_recipe("rnn")
    assert TRANSLATION.recipe_for({}, data, GPU, begun).model.kind == "rnn"


def test_a_value_that_was_set_stays() -> None:
    for weight in (0.0, 2.5):
        given = read_recipe("rnn", {"training.consistency": weight})
        assert TRANSLATION.completed(given, 10_000, GPU, None) == given
        assert best_recipe(given, 10_000) == given
    assert TRANSLATION.completed(read_recipe("article"), 10_000, GPU, None).training.consistency == 0


def test_a_resumed_run_goes_on_as_it_began() -> None:
    begun = replace(Recipe(), training=TrainingRecipe(consistency=3.0))
    assert TRANSLATION.completed(Recipe(), 10_000, CPU, begun).training.consistency == 3.0


def test_the_best_model_is_trained_with_consistency_on_every_device() -> None:
    for pairs in (2_000, 10_000):
        assert best_recipe(Recipe(), pairs).training.consistency == consistency(pairs)


def test_it_is_off_where_nothing_chose_it() -> None:
    assert Recipe().fitted(10_000, 6.0, 0.0).training.consistency == 0
