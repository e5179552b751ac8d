"""What a run trains: from pairs and a recipe to vocabularies, examples and a fresh model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from regard.folder import Vocabularies
from regard.models.recurrent import Recurrent
from regard.scoring import group
from regard.search.hypothesis import Length
from regard.text.examples import Examples, Variety
from regard.text.pairs import Pair
from regard.text.vocabulary import Vocabulary, learn_subwords, learn_words
from regard.training.guide import Guide
from regard.training.recipe import Recipe, VocabularyRecipe

VALIDATED = 1000
"""at most so many sources of dev are translated at a validation"""


@dataclass(frozen=True)
class Setup:
    recipe: Recipe
    vocabularies: Vocabularies
    examples: Examples
    model: Recurrent
    limit: Length
    sources: list[str]
    """of dev"""
    references: list[list[str]]
    guide: Guide | None = None
    """where attention should look, if it is told"""


def set_up(train: Sequence[Pair], dev: Sequence[Pair], recipe: Recipe, seed: int) -> Setup:
    """A pure function of what it is given: the same pairs, recipe and seed give the same start."""
    words = sum(max(len(pair.source.split()), len(pair.target.split())) for pair in train) / len(train)
    recipe = recipe.fitted(len(train), words, shared_letters(train))
    vocabularies = learn_vocabularies(train, recipe.vocabulary)
    training = recipe.training
    variety = Variety(training.segmentation_dropout, training.lower_case, training.no_stop)
    examples = Examples(train, vocabularies.source, vocabularies.target, variety, seed)
    limit = Length.learned([(len(example.source) + 1, len(example.target)) for example in examples.plain])
    torch.manual_seed(seed)
    model = build(recipe, vocabularies)
    sources, references = group(dev)
    guide = Guide.of(train, vocabularies) if training.guided_attention else None
    return Setup(recipe, vocabularies, examples, model, limit, sources[:VALIDATED], references[:VALIDATED], guide)


def build(recipe: Recipe, vocabularies: Vocabularies) -> Recurrent:
    """The model of a recipe, untrained."""
    return Recurrent(recipe.model, len(vocabularies.source), len(vocabularies.target))


def put(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Weights into a model; each must be there, and of the right shape."""
    named = dict(model.named_parameters())
    if named.keys() != weights.keys():
        strange = sorted(named.keys() ^ weights.keys())
        raise ValueError(f"weights: they do not fit the recipe: {strange[0]!r} is in one and not in the other")
    with torch.no_grad():
        for name, parameter in named.items():
            if parameter.shape != weights[name].shape:
                got, expected = list(weights[name].shape), list(parameter.shape)
                raise ValueError(f"weights: {name}: expected {expected} by the recipe, got {got}")
            parameter.copy_(weights[name])


def learn_vocabularies(pairs: Sequence[Pair], recipe: VocabularyRecipe) -> Vocabularies:
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if recipe.joint:
        both = _learn([*sources, *targets], recipe)
        return Vocabularies(both, both)
    return Vocabularies(_learn(sources, recipe), _learn(targets, recipe))


def _learn(texts: Sequence[str], recipe: VocabularyRecipe) -> Vocabulary:
    if recipe.kind == "words":
        return learn_words(texts, recipe.size)
    assert recipe.size is not None
    return learn_subwords(texts, recipe.size)


def shared_letters(pairs: Sequence[Pair]) -> float:
    """Of all letters written on the target side, the share whose letter occurs on the source side."""
    sources = {letter for pair in pairs for letter in pair.source if letter.isalpha()}
    targets = [letter for pair in pairs for letter in pair.target if letter.isalpha()]
    return sum(letter in sources for letter in targets) / max(1, len(targets))
