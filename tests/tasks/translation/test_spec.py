"""What a recipe leaves open and the device decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regard.config.recipe import Recipe, TrainingRecipe
from regard.config.recipe_text import read_recipe
from regard.config.sizes import consistency, default_consistency
from regard.experiments.best.translation import best_recipe
from regard.tasks.registry import TRANSLATION


@pytest.mark.parametrize("on_gpu", [True, False])
def test_open_consistency_follows_the_device(on_gpu: bool) -> None:
    chosen = TRANSLATION.completed(read_recipe("transformer"), 2_500, on_gpu, None)
    assert chosen.training.consistency == default_consistency("transformer", 2_500, on_gpu) == 5.0 * on_gpu


def test_a_value_that_was_set_stays() -> None:
    for weight in (0.0, 2.5):
        given = read_recipe("rnn", {"training.consistency": weight})
        assert TRANSLATION.completed(given, 10_000, True, None) == given
        assert best_recipe(given, 10_000) == given
    assert TRANSLATION.completed(read_recipe("article"), 10_000, True, None).training.consistency == 0


def test_a_resumed_run_goes_on_as_it_began() -> None:
    begun = replace(Recipe(), training=TrainingRecipe(consistency=3.0))
    assert TRANSLATION.completed(Recipe(), 10_000, False, begun).training.consistency == 3.0


def test_the_best_model_is_trained_with_consistency_on_every_device() -> None:
    for pairs in (2_000, 10_000):
        assert best_recipe(Recipe(), pairs).training.consistency == consistency(pairs)


def test_it_is_off_where_nothing_chose_it() -> None:
    assert Recipe().fitted(10_000, 6.0, 0.0).training.consistency == 0
