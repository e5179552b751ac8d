"""The recipe of tuning: that of the old model, with other values for training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from regard.config.recipe import Recipe
from regard.config.recipe_text import read_recipe
from regard.models.building import ModelOptions

RATE_FACTOR = 0.2  # the learning rate, as a fraction of the one that the model was trained with
PULL, REPLAYED_PULL = 0.1, 0.005  # towards the old weights: without old examples, and where some are mixed in
UPDATES, REPLAYED_UPDATES = 120, 240  # of a tuning on few examples: alone a model soon forgets more than it learns
MIN_EPOCHS, MAX_EPOCHS = 3, 30
MIN_BATCHES = 16  # of an epoch: with fewer examples the batches are smaller
MIN_BATCH_SENTENCES = 16
FREE_OPTIONS = ("dropout", "output_dropout", "left_out")  # of a model: they matter in training alone


def tuning_recipe(old: Recipe, settings: Mapping[str, Any] | None, replayed: bool) -> Recipe:
    """Return the recipe that a model with the recipe `old` is tuned by, with values set; `replayed`: old examples are
    mixed in, so that it takes less of a pull towards the old weights.

    Raise a ValueError for settings that would make it another model. The number of epochs and the size of batches are
    left open, unless they are set.
    """
    training = replace(
        old.training,
        epochs=None,
        batch_sentences=None,
        learning_rate=round(RATE_FACTOR * old.training.peak_learning_rate, 6),
        warmup=50,
        average=min(old.training.average, 0.99),
        word_pairs=0.0,
        pull=REPLAYED_PULL if replayed else PULL,
        validations=8,
        patience=3,
    )
    recipe = read_recipe(replace(old, training=training), settings)
    if recipe.vocabulary != old.vocabulary or _fixed(recipe.model) != _fixed(old.model):
        changed = ", ".join(key for key in settings or {} if not key.startswith(("training.", "search.")))
        expected = "expected keys of training or search, or the dropout of the model"
        raise ValueError(f"--set {changed}: tuning changes neither the model nor its vocabulary; {expected}")
    return recipe


def fitted_to_tuning(recipe: Recipe, examples: float, replayed: bool) -> Recipe:
    """Return the recipe with epochs and batches chosen, if an epoch has so many examples, old ones among them if they
    are `replayed`."""
    training, updates = recipe.training, REPLAYED_UPDATES if replayed else UPDATES
    sentences = training.batch_sentences or max(MIN_BATCH_SENTENCES, round(examples / MIN_BATCHES))
    epochs = max(MIN_EPOCHS, min(MAX_EPOCHS, round(updates * sentences / max(1.0, examples))))
    return replace(recipe, training=replace(training, batch_sentences=sentences, epochs=training.epochs or epochs))


def _fixed(options: ModelOptions) -> dict[str, Any]:
    """Return the options that decide what a model computes when it is used."""
    return {each.name: getattr(options, each.name) for each in fields(options) if each.name not in FREE_OPTIONS}
