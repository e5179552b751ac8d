"""What is chosen from the size of the data."""

from dataclasses import dataclass, replace
from typing import Literal

import pytest

from regard.config.recipe import Recipe, TrainingRecipe
from regard.config.recipe_text import read_recipe
from regard.config.sizes import Budget, best_model_kind, consistency, default_consistency
from regard.models.transformer.model import TransformerOptions

GPU, CPU = Budget(True, None), Budget(False, None)


@pytest.mark.parametrize(
    ("pairs", "words", "budget", "name"),
    [
        (100, 5.0, Budget(True, 60.0), "transformer"),
        (100, 5.0, Budget(False, 60.0), "rnn"),
        (4_999, 7.0, GPU, "transformer"),
        (4_999, 7.0, CPU, "transformer"),
        (5_000, 7.0, CPU, "rnn"),
        (5_000, 7.0, GPU, "transformer"),
        (30_353, 5.4, GPU, "rnn"),
        (30_353, 5.4, Budget(True, 60.0), "rnn"),
        (28_997, 12.3, GPU, "transformer"),
        (10**6, 5.4, GPU, "transformer"),
        (10**6, 12.0, CPU, "rnn"),
    ],
)
def test_what_measured_better(pairs: int, words: float, budget: Budget, name: str) -> None:
    assert best_model_kind(pairs, words, budget) == name


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
    ("kind", "pairs", "budget", "weight"),
    [
        ("transformer", 2_500, GPU, 5.0),
        ("transformer", 2_500, CPU, 0.0),
        ("transformer", 30_000, GPU, 1.0),
        ("transformer", 30_000, Budget(True, 299.0), 0.0),
        ("transformer", 30_000, Budget(True, 300.0), 1.0),
        ("transformer", 30_000, Budget(False, 3_000.0), 0.0),
        ("transformer", 10**6, GPU, 0.0),
        ("rnn", 2_500, GPU, 0.0),
        ("rnn", 30_000, GPU, 1.0),
    ],
)
def test_consistency_training_is_on_where_it_scored_higher(
    kind: str, pairs: int, budget: Budget, weight: float
) -> None:
    assert default_consistency(kind, pairs, budget) == weight


def test_little_data_gets_more_consistency() -> None:
    assert (consistency(2_500), consistency(30_000)) == (5.0, 1.0)
