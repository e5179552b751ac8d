"""A captioner: the decoder of a Transformer over the patches of an image."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from regard.models.images.model import ImageEncoder, ImageOptions
from regard.models.training_sizes import TrainingSizes
from regard.models.transformer.model import Transformer, TransformerOptions


@dataclass(frozen=True)
class CaptionerOptions(TrainingSizes):
    """What can be chosen. The decoder is as wide as the image's encoder."""

    kind: Literal["captioner"] = "captioner"
    image: ImageOptions = field(default_factory=lambda: ImageOptions(stem="conv"))
    decoder: TransformerOptions = field(
        default_factory=lambda: TransformerOptions(width=128, heads=4, feedforward=256, decoder_layers=2, dropout=0.1)
    )


def build_captioner(options: CaptionerOptions, vocabulary: int) -> Transformer:
    """Return an untrained captioner whose images have the size that the options say."""
    if options.decoder.width != options.image.width:
        raise ValueError(
            f"model.decoder.width: expected {options.image.width}, as model.image.width, got {options.decoder.width}"
        )
    return Transformer(options.decoder, 0, vocabulary, encoder=ImageEncoder(options.image))
