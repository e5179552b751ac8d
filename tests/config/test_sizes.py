"""What is chosen from the size of the data."""

from dataclasses import dataclass, replace
from typing import Literal

import pytest

from regard.config.recipe import Recipe, TrainingRecipe
from regard.config.recipe_text import read_recipe
from regard.config.sizes import best_model_kind, consistency, default_consistency
from regard.models.transformer.model import TransformerOptions


@pytest.mark.parametrize(
    ("pairs", "on_gpu", "limited", "name"),
    [
        (100, True, True, "rnn"),
        (100, False, True, "rnn"),
        (4_999, True, False, "transformer"),
        (4_999, False, False, "transformer"),
        (5_000, False, False, "rnn"),
        (19_999, True, False, "rnn"),
        (20_000, True, True, "transformer"),
        (10**6, False, False, "rnn"),
    ],
)
def test_what_measured_better(pairs: int, on_gpu: bool, limited: bool, name: str) -> None:
    assert best_model_kind(pairs, on_gpu, limited) == name


@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_expected_epochs_are_most_for_some_ten_thousand_pairs(kind: str) -> None:
    model = read_recipe(kind).model
    epochs = [model.expected_epochs(pairs) for pairs in (1, 1_000, 2_500, 30_000, 200_000, 10**9)]
    assert epochs == [5, 38, 56, 150, 58, 5]


@pytest.mark.parametrize(
    ("pairs", "settings", "rate", "dropout"),
    [
        (30_353, {}, 0.003, 0.3),
        (10_000, {}, 0.00213, 0.3),
        (1_000, {}, 0.00077, 0.2),
        (30_353, {"training.batch_tokens": 480}, 0.001, 0.3),
        (30_353, {"training.batch_sentences": 90}, 0.0015, 0.3),
        (1_000, {"training.learning_rate": 0.01, "model.dropout": 0.4}, 0.01, 0.4),
    ],
)
def test_a_transformer_takes_smaller_steps_from_fewer_sentences(
    pairs: int, settings: dict[str, float], rate: float, dropout: float
) -> None:
    recipe = read_recipe("transformer", settings).fitted(pairs, 6.0, 0.0)
    assert recipe.training.learning_rate == rate and recipe.model.dropout == dropout


@dataclass(frozen=True)
class OwnOptions(TransformerOptions):
    kind: Literal["own"] = "own"  # type: ignore[assignment]


@dataclass(frozen=True)
class OwnSizes(OwnOptions):
    def batch_sentences(self, pairs: int) -> int:
        return 7


def test_a_model_of_its_own_kind_has_the_sizes_that_its_options_say() -> None:
    plain = Recipe(model=TransformerOptions()).fitted(10_000, 6.0, 0.0)
    own = Recipe(model=OwnOptions()).fitted(10_000, 6.0, 0.0)
    assert own.training == plain.training and own.training != Recipe().fitted(10_000, 6.0, 0.0).training
    few = Recipe(model=OwnSizes(), training=TrainingRecipe(learning_rate=0.01)).fitted(10_000, 32.0, 0.0)
    assert few.training == replace(plain.training, batch_tokens=448, learning_rate=0.01)


@pytest.mark.parametrize(
    ("kind", "pairs", "on_gpu", "weight"),
    [
        ("transformer", 2_500, True, 5.0),
        ("transformer", 2_500, False, 0.0),
        ("transformer", 30_000, True, 0.0),
        ("rnn", 2_500, True, 0.0),
    ],
)
def test_consistency_training_is_on_where_it_scored_higher(kind: str, pairs: int, on_gpu: bool, weight: float) -> None:
    assert default_consistency(kind, pairs, on_gpu) == weight


def test_little_data_gets_more_consistency() -> None:
    assert (consistency(2_500), consistency(30_000)) == (5.0, 1.0)
