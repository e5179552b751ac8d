"""Build a model from a recipe's options, and load weights into it."""

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
    The model is built on the meta device, which takes neither memory nor time."""
    with torch.device("meta"):
        if isinstance(options, ClassifierOptions):
            TextClassifier(options, 2, 2, 2)
        elif isinstance(options, ImageOptions):
            ImageModel(_with_image_size(options), 2)
        elif isinstance(options, CaptionerOptions):
            build_captioner(replace(options, image=_with_image_size(options.image)), 2)
        else:
            build(options, 2, 2)


def _with_image_size(options: ImageOptions) -> ImageOptions:
    """Return the options with some image size where it is left to the data."""
    height, width = options.image_height or options.patch, options.image_width or options.patch
    return replace(options, image_height=height, image_width=width, channels=options.channels or 1)


def load_weights(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Copy weights into a model; raise a ValueError if a name is missing or superfluous, or a shape differs."""
    parameters = dict(model.named_parameters())
    if parameters.keys() != weights.keys():
        unmatched = sorted(parameters.keys() ^ weights.keys())
        raise ValueError(f"weights: they do not fit the recipe: {unmatched[0]!r} is in one and not in the other")
    with torch.no_grad():
        for name, parameter in parameters.items():
            if parameter.shape != weights[name].shape:
                got, expected = list(weights[name].shape), list(parameter.shape)
                raise ValueError(f"weights: {name}: expected {expected} by the recipe, got {got}")
            parameter.copy_(weights[name])
