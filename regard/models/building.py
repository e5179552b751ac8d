"""Build a model from a recipe's options, and load weights into it.

The model of a recipe that a stranger may have written is first built on the meta device, without memory: its sizes must
be those of the file of weights before anything is allocated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard.models.documents.classifier import ClassifierOptions, TextClassifier
from regard.models.images.captioner import CaptionerOptions, build_captioner
from regard.models.images.model import ImageModel, ImageOptions
from regard.models.recurrent.model import Recurrent, RecurrentOptions
from regard.models.transformer.model import Transformer, TransformerOptions
from regard.runtime.tensor_file import TensorFile, damaged

ModelOptions = RecurrentOptions | TransformerOptions | ClassifierOptions | ImageOptions | CaptionerOptions
TranslationModel = Recurrent | Transformer
MAX_LAYERS = 1000  # layers, or members of an ensemble, of one part of a model: each is built by Python
MAX_SIZE = 1 << 24  # features and other sizes


def build(options: ModelOptions, source_vocabulary: int, target_vocabulary: int) -> TranslationModel:
    """Return an untrained translator."""
    if isinstance(options, RecurrentOptions):
        return Recurrent(options, source_vocabulary, target_vocabulary)
    if isinstance(options, TransformerOptions):
        return Transformer(options, source_vocabulary, target_vocabulary)
    raise ValueError(f"model.kind: expected a translator's, got {options.kind!r}")


def check(options: ModelOptions) -> None:
    """Raise a ValueError for options that no model can be built from, such as heads that do not divide the features."""
    with without_memory(options):
        if isinstance(options, ClassifierOptions):
            TextClassifier(options, 2, 2, 2)
        elif isinstance(options, ImageOptions):
            ImageModel(_with_image_size(options), 2)
        elif isinstance(options, CaptionerOptions):
            build_captioner(replace(options, image=_with_image_size(options.image)), 2)
        else:
            build(options, 2, 2)


@contextmanager
def without_memory(options: ModelOptions) -> Iterator[None]:
    """Build models of these options on the meta device, which takes neither memory nor time.

    Raise a ValueError for sizes that no tensor or no machine can have.
    """
    check_sizes(options)
    try:
        with torch.device("meta"), _Unfilled():
            yield
    except (RuntimeError, OverflowError, TypeError) as error:  # of torch, for sizes beyond 64 bits
        reason = str(error).strip().split("\n")[0]
        raise ValueError(f"model: no model of these sizes can be built: {reason}") from None


class _Unfilled(TorchFunctionMode):
    """Leaves new tensors without values. On the meta device, torch's random values would import sympy: a second."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in (torch.Tensor.normal_, torch.Tensor.uniform_) or getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else given["tensor"]
        if func is torch.eye:
            return torch.empty(args[0], args[0], **given)
        return torch.empty(*args, **given) if func is torch.randn else func(*args, **given)


def check_sizes(options: Any, path: str = "model") -> None:
    """Raise a ValueError for more layers than could be built in a reasonable time, and for sizes beyond all models."""
    for each in fields(options):
        value, name = getattr(options, each.name), f"{path}.{each.name}"
        if is_dataclass(value):
            check_sizes(value, name)
        elif isinstance(value, int) and value > (limit := MAX_LAYERS if "layers" in each.name else MAX_SIZE):
            raise ValueError(f"{name}: expected at most {limit:,}, got {value:,}")
    if isinstance(options, ClassifierOptions) and len(options.judges) > MAX_LAYERS:
        raise ValueError(f"{path}.states: expected at most {MAX_LAYERS:,}, got {len(options.judges):,}")


def _with_image_size(options: ImageOptions) -> ImageOptions:
    """Return the options with some image size where it is left to the data."""
    height, width = options.image_height or options.patch, options.image_width or options.patch
    return replace(options, image_height=height, image_width=width, channels=options.channels or 1)


def load_weights(model: nn.Module, weights: TensorFile) -> None:
    """Give a model on the meta device the weights of a file; those of a model elsewhere are overwritten.

    Raise a ValueError, before any is read, if a name is missing or superfluous, or a shape or dtype differs.
    """
    parameters = dict(model.named_parameters())
    if parameters.keys() != weights.entries.keys():
        unmatched = min(parameters.keys() ^ weights.entries.keys())
        raise ValueError(
            f"{weights.path}: weights: they do not fit the recipe: {unmatched!r} is in one and not in the other"
        )
    for name, parameter in parameters.items():
        entry = weights.entries[name]
        if tuple(parameter.shape) != entry.shape:
            got, expected = list(entry.shape), list(parameter.shape)
            raise ValueError(f"{weights.path}: weights: {name}: expected {expected} by the recipe, got {got}")
        if not entry.dtype.is_floating_point:
            raise ValueError(f"{weights.path}: weights: {name}: expected floating-point numbers, got {entry.dtype}")
    replacements: dict[nn.Parameter, nn.Parameter] = {}
    for name, parameter in parameters.items():
        tensor = _finite(weights, name)
        if parameter.is_meta:
            replacements[parameter] = nn.Parameter(tensor.to(parameter.dtype), parameter.requires_grad)
        else:
            parameter.data.copy_(tensor)
    for module in model.modules():  # tied weights are one parameter of several modules
        for name, own in list(module._parameters.items()):
            if own in replacements:
                setattr(module, name, replacements[own])


def _finite(weights: TensorFile, name: str) -> torch.Tensor:
    """Read a tensor; raise a ValueError if it has NaN or infinite values."""
    tensor = weights.read(name)
    if tensor.numel() and not all(bool(bound.isfinite()) for bound in tensor.aminmax()):  # NaN is the bound of all
        raise damaged(weights.path, f"weights: {name}: expected finite numbers, got NaN or infinity")
    return tensor
