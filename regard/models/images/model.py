"""Pictures: cut into patches that look at each other, and read by a learned query or by a decoder.

    patch     x_rc = W · pixels of patch (r, c) + row_r + column_c           (Dosovitskiy et al. 2021)
    encoder   blocks of self-attention over the h × w patches, row by row, with any pattern: `Grid(h, w)` has those of
              pictures
    class     p = softmax(O Σ_rc α_rc x_rc), α of a learned query: the weights lie over the picture
    caption   the decoder of a Transformer looks at the patches where it would look at words

B pictures, C channels, S = h · w patches, D features.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from regard.core.checks import choices, shape, whole_number
from regard.core.grid_patterns import Grid
from regard.core.pool import Pool
from regard.models.dropout import Dropout
from regard.models.transformer.layers import EncoderBlock, Looking, Shape
from regard.models.transformer.positions import sinusoids


@dataclass(frozen=True)
class ImageOptions:
    """What can be chosen."""

    kind: Literal["image"] = "image"
    image_height: int = 0
    """pixels; 0: from the data"""
    image_width: int = 0
    """pixels; 0: from the data"""
    channels: int = 0
    """0: from the data"""
    patch: int = 4
    """pixels of a patch, each way; a divisor of both sides"""
    stem: Literal["linear", "conv"] = "linear"
    """what patches are made of: the pixels, or what two small convolutions find around each (Xiao et al. 2021)"""
    positions: Literal["learned", "sinusoidal"] = "learned"
    """a vector for each row and one for each column; or half the features waves along rows, half along columns"""
    width: int = 128
    """features of a patch"""
    heads: int = 4
    feedforward: int = 256
    layers: int = 2
    norm: Literal["pre", "post"] = "pre"
    activation: Literal["relu", "gelu"] = "gelu"
    dropout: float = 0.1
    attention: Looking = field(default_factory=Looking)
    """how patches look at each other, such as `grid(8, 8).axial`"""

    def __post_init__(self) -> None:
        for name in ("image_height", "image_width", "channels", "layers"):
            whole_number("model", name, getattr(self, name))
        whole_number("model", "patch", self.patch, least=1)
        choices("model", self)
        assert self.shape  # which checks the rest

    @property
    def shape(self) -> Shape:
        """What all blocks share."""
        return Shape(self.width, self.heads, self.feedforward, self.norm, self.activation, dropout=self.dropout)

    @property
    def grid(self) -> Grid:
        """The patches."""
        return Grid(self.image_height // self.patch, self.image_width // self.patch)

    def check_patches(self) -> None:
        """Raise a ValueError if patches do not fill the image."""
        for name in ("image_height", "image_width"):
            if getattr(self, name) % self.patch:
                raise ValueError(
                    f"model: patch: expected a divisor of {name} = {getattr(self, name)}, got {self.patch}"
                )

    def for_images(self, pixels: Tensor) -> ImageOptions:
        """Return the options with the size of the images [N, C, height, width]; raise a ValueError if it is another."""
        sizes = dict(zip(("channels", "image_height", "image_width"), pixels.shape[1:], strict=True))
        for name, size in sizes.items():
            if getattr(self, name) not in (0, size):
                raise ValueError(f"model.{name}: expected {size}, as the images have, got {getattr(self, name)}")
        channels, height, width = pixels.shape[1:]
        return replace(self, channels=channels, image_height=height, image_width=width)


class Patches(nn.Module):
    """Pictures [B, C, height, width] → patches [B, S, D], row by row, each knowing its place."""

    def __init__(self, options: ImageOptions) -> None:
        super().__init__()
        options.check_patches()
        self.options = options
        channels, width = options.channels, options.width
        self.stem: nn.Module = nn.Identity()
        if options.stem == "conv":
            channels = max(16, width // 4)
            first, second = (nn.Conv2d(inwards, channels, 3, padding=1) for inwards in (options.channels, channels))
            self.stem = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.project = nn.Linear(channels * options.patch**2, width)
        grid = options.grid
        self.row_table: nn.Parameter | None = None
        self.column_table: nn.Parameter | None = None
        if options.positions == "learned":
            self.row_table = nn.Parameter(torch.randn(grid.height, width) * width**-0.5)
            self.column_table = nn.Parameter(torch.randn(grid.width, width) * width**-0.5)
        self.dropout = Dropout(options.dropout)

    def forward(self, pictures: Tensor) -> Tensor:
        options = self.options
        expected = (options.channels, options.image_height, options.image_width)
        if pictures.dim() != 4 or tuple(pictures.shape[1:]) != expected:
            raise ValueError(f"pictures: expected [B, {', '.join(map(str, expected))}], got {shape(pictures)}")
        side, grid = options.patch, options.grid
        cut = self.stem(pictures).unflatten(-1, (grid.width, side)).unflatten(-3, (grid.height, side))
        pixels = cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)  # [B, C, h, p, w, p] → [B, S, C · p²]
        found: Tensor = self.dropout(self.project(pixels) + self.places())
        return found

    def places(self) -> Tensor:
        """[S, D]"""
        grid, device = self.options.grid, self.project.weight.device
        if self.row_table is not None and self.column_table is not None:
            return (self.row_table[:, None] + self.column_table).flatten(0, 1)
        half = self.options.width // 2
        rows = sinusoids(grid.height, half, device)[:, None].expand(-1, grid.width, -1)
        columns = sinusoids(grid.width, self.options.width - half, device).expand(grid.height, -1, -1)
        return torch.cat([rows, columns], -1).flatten(0, 1)


class ImageEncoder(nn.Module):
    """Patches that have looked at each other. It stands where the encoder of a Transformer does: an `Encoding`."""

    def __init__(self, options: ImageOptions) -> None:
        super().__init__()
        self.options = options
        self.patches = Patches(options)
        self.blocks = nn.ModuleList(EncoderBlock(options.shape, options.attention) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.width) if options.norm == "pre" else nn.Identity()

    def forward(self, source: Tensor, lengths: Tensor | None = None, seen: list[Tensor] | None = None) -> Tensor:
        """source [B, C, height, width] → states [B, S, D]; `lengths` [B]: how many patches count; None: all."""
        states: Tensor = self.patches(source)
        for block in self.blocks:
            states = block(states, lengths, None, seen)
        found: Tensor = self.norm(states)
        return found


class Classified(NamedTuple):
    """What a picture shows."""

    logits: Tensor
    """[B, classes]"""
    weights: Tensor | None
    """[B, S] if asked for: which patches decided, as the learned query weighs them"""


class ImageModel(nn.Module):
    """A learned query looks over the patches, and what it sees is classified."""

    def __init__(self, options: ImageOptions, classes: int) -> None:
        super().__init__()
        self.encoder = ImageEncoder(options)
        self.pool = Pool(options.width)
        self.dropout = Dropout(options.dropout)
        self.output = nn.Linear(options.width, whole_number("ImageModel", "classes", classes, least=1))

    def forward(self, pictures: Tensor, weights: bool = False) -> Classified:
        """pictures [B, C, height, width]"""
        seen = self.pool(self.encoder(pictures), weights=weights)
        return Classified(self.output(self.dropout(seen.context)), seen.weights)

    def attentions(self, pictures: Tensor) -> dict[str, Tensor]:
        """All weights, for a trace: "encoder" [B, layers, heads, S, S], "pool" [B, 1, 1, 1, S]."""
        inside: list[Tensor] = []
        seen = self.pool(self.encoder(pictures, seen=inside), weights=True)
        found = {"encoder": torch.stack(inside, 1)} if inside else {}
        return found | {"pool": seen.weights[:, None, None, None]}
