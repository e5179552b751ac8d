"""From a recipe's options to a model, and weights into it."""

from __future__ import annotations

import torch
from torch import nn

from regard.models.classifier import ClassifierOptions, TextClassifier
from regard.models.recurrent import Recurrent, RecurrentOptions
from regard.models.transformer import Transformer, TransformerOptions

TranslationOptions = RecurrentOptions | TransformerOptions
TranslationModel = Recurrent | Transformer


def build(
    options: TranslationOptions | ClassifierOptions, source_vocabulary: int, target_vocabulary: int
) -> TranslationModel:
    """The translator, untrained."""
    if isinstance(options, ClassifierOptions):
        raise ValueError("model.kind: expected a translator's, got 'classifier'")
    kind = Recurrent if isinstance(options, RecurrentOptions) else Transformer
    return kind(options, source_vocabulary, target_vocabulary)  # type: ignore[arg-type]


def check(options: TranslationOptions | ClassifierOptions) -> None:
    """Raise a ValueError for options that no model can be built from, such as heads that do not divide the features.

    A model is built on the meta device, which takes no memory and no time.
    """
    with torch.device("meta"):
        if isinstance(options, ClassifierOptions):
            TextClassifier(options, 2, 2, 2)
        else:
            build(options, 2, 2)


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
