"""From a recipe's options to a model, and weights into it."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from regard.models.documents.classifier import ClassifierOptions, TextClassifier
from regard.models.images.captioner import CaptionerOptions, build_captioner
from regard.models.images.model import ImageModel, ImageOptions
from regard.models.recurrent.model import Recurrent, RecurrentOptions
from regard.models.transformer.model import Transformer, TransformerOptions

ModelOptions = RecurrentOptions | TransformerOptions | ClassifierOptions | ImageOptions | CaptionerOptions
TranslationModel = Recurrent | Transformer


def build(options: ModelOptions, source_vocabulary: int, target_vocabulary: int) -> TranslationModel:
    """Return an untrained translator."""
    if isinstance(options, RecurrentOptions):
        return Recurrent(options, source_vocabulary, target_vocabulary)
    if isinstance(options, TransformerOptions):
        return Transformer(options, source_vocabulary, target_vocabulary)
    raise ValueError(f"model.kind: expected a translator's, got {options.kind!r}")


def check(options: ModelOptions) -> None:
    """Raise a ValueError for options that no model can be built from, such as heads that do not divide the features.

    A model is built on the meta device, which takes no memory and no time.
    """
    with torch.device("meta"):
        if isinstance(options, ClassifierOptions):
            TextClassifier(options, 2, 2, 2)
        elif isinstance(options, ImageOptions):
            ImageModel(_with_a_size(options), 2)
        elif isinstance(options, CaptionerOptions):
            build_captioner(replace(options, image=_with_a_size(options.image)), 2)
        else:
            build(options, 2, 2)


def _with_a_size(options: ImageOptions) -> ImageOptions:
    """Return the options with sizes where they are left to the data."""
    height, width = options.image_height or options.patch, options.image_width or options.patch
    return replace(options, image_height=height, image_width=width, channels=options.channels or 1)


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
