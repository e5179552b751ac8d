"""Image models: patches with self-attention, read by a learned query (classifier) or by a decoder (captioner).

    patch     x_rc = W · pixels of patch (r, c) + row_r + column_c           (Dosovitskiy et al. 2021)
    encoder   blocks of self-attention over the h × w patches, row by row, with any pattern; `Grid(h, w)` has patterns
              for images
    class     p = softmax(O Σ_rc α_rc x_rc), where α are the weights of a learned query over the patches
    caption   a Transformer decoder, whose cross-attention is over the patches

B images, C channels, S = h · w patches, D features.
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
from regard.models.training_sizes import TrainingSizes
from regard.models.transformer.layers import AttentionOptions, EncoderBlock, Shape, WeightsOut
from regard.models.transformer.positions import sinusoids


@dataclass(frozen=True)
class ImageOptions(TrainingSizes):
    """The options of an image model."""

    kind: Literal["image"] = "image"
    image_height: int = 0
    """pixels; 0: from the data"""
    image_width: int = 0
    """pixels; 0: from the data"""
    channels: int = 0
    """0: from the data"""
    patch: int = 4
    """the side of a patch in pixels; a divisor of the image's height and width"""
    stem: Literal["linear", "conv"] = "linear"
    """the input of the patch projection: the pixels, or the output of two small convolutions (Xiao et al. 2021)"""
    positions: Literal["learned", "sinusoidal"] = "learned"
    """a learned vector for each row and each column; or sinusoids, half the features for rows, half for columns"""
    width: int = 128
    """features of a patch"""
    heads: int = 4
    feedforward: int = 256
    layers: int = 2
    norm: Literal["pre", "post"] = "pre"
    activation: Literal["relu", "gelu"] = "gelu"
    dropout: float = 0.1
    attention: AttentionOptions = field(default_factory=AttentionOptions)
    """self-attention among the patches, with a pattern such as `grid(8, 8).axial`"""

    def __post_init__(self) -> None:
        for name in ("image_height", "image_width", "channels", "layers"):
            whole_number("model", name, getattr(self, name))
        whole_number("model", "patch", self.patch, minimum=1)
        choices("model", self)
        assert self.shape  # which checks the rest

    @property
    def shape(self) -> Shape:
        """The sizes and options that all blocks share."""
        return Shape(self.width, self.heads, self.feedforward, self.norm, self.activation, dropout=self.dropout)

    @property
    def grid(self) -> Grid:
        """The grid of patches."""
        return Grid(self.image_height // self.patch, self.image_width // self.patch)

    def check_patches(self) -> None:
        """Raise a ValueError if patches do not fill the image."""
        for name in ("image_height", "image_width"):
            if (size := getattr(self, name)) % self.patch:
                raise ValueError(f"model: patch: expected a divisor of {name} = {size}, got {self.patch}")

    def for_images(self, pixels: Tensor) -> ImageOptions:
        """Return the options with the size of the images [N, C, height, width]; raise a ValueError on a conflict."""
        sizes = dict(zip(("channels", "image_height", "image_width"), pixels.shape[1:], strict=True))
        for name, size in sizes.items():
            if getattr(self, name) not in (0, size):
                raise ValueError(f"model.{name}: expected {size}, as the images have, got {getattr(self, name)}")
        channels, height, width = pixels.shape[1:]
        return replace(self, channels=channels, image_height=height, image_width=width)


class Patches(nn.Module):
    """Maps images [B, C, height, width] to patches [B, S, D], row by row, plus their position vectors."""

    def __init__(self, options: ImageOptions) -> None:
        super().__init__()
        options.check_patches()
        self.options = options
        channels, width = options.channels, options.width
        self.stem: nn.Module = nn.Identity()
        if options.stem == "conv":
            channels = max(16, width // 4)
            first, second = (nn.Conv2d(inputs, channels, 3, padding=1) for inputs in (options.channels, channels))
            self.stem = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.project = nn.Linear(channels * options.patch**2, width)
        grid = options.grid
        self.row_table, self.column_table = (
            nn.Parameter(torch.randn(size, width) * width**-0.5) if options.positions == "learned" else None
            for size in (grid.height, grid.width)
        )
        self.dropout = Dropout(options.dropout)

    def forward(self, pictures: Tensor) -> Tensor:
        options = self.options
        expected = (options.channels, options.image_height, options.image_width)
        if pictures.dim() != 4 or tuple(pictures.shape[1:]) != expected:
            raise ValueError(f"pictures: expected [B, {', '.join(map(str, expected))}], got {shape(pictures)}")
        side, grid = options.patch, options.grid
        cut = self.stem(pictures).unflatten(-1, (grid.width, side)).unflatten(-3, (grid.height, side))
        pixels = cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)  # [B, C, h, p, w, p] → [B, S, C · p²]
        patches: Tensor = self.dropout(self.project(pixels) + self.position_vectors())
        return patches

    def position_vectors(self) -> Tensor:
        """Return the position vectors of the patches: [S, D]."""
        grid, device = self.options.grid, self.project.weight.device
        if self.row_table is not None and self.column_table is not None:
            return (self.row_table[:, None] + self.column_table).flatten(0, 1)
        half = self.options.width // 2
        rows = sinusoids(grid.height, half, device)[:, None].expand(-1, grid.width, -1)
        columns = sinusoids(grid.width, self.options.width - half, device).expand(grid.height, -1, -1)
        return torch.cat([rows, columns], -1).flatten(0, 1)


class ImageEncoder(nn.Module):
    """Patches and blocks of self-attention: a `SourceEncoder`, which can replace the encoder of a Transformer."""

    def __init__(self, options: ImageOptions) -> None:
        super().__init__()
        self.options = options
        self.patches = Patches(options)
        self.blocks = nn.ModuleList(EncoderBlock(options.shape, options.attention) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.width) if options.norm == "pre" else nn.Identity()

    def forward(self, source: Tensor, lengths: Tensor | None = None, weights_out: WeightsOut = None) -> Tensor:
        """Return states [B, S, D] of images [B, C, height, width]; `lengths` [B] of the patches count (None: all)."""
        states: Tensor = self.patches(source)
        for block in self.blocks:
            states = block(states, lengths, None, weights_out)
        normalized: Tensor = self.norm(states)
        return normalized


class ImageModelOutput(NamedTuple):
    """The output of an image classifier."""

    logits: Tensor  # [B, classes]
    weights: Tensor | None  # [B, S] if requested: the weights of the learned query over the patches


class ImageModel(nn.Module):
    """An image classifier: a learned query pools the encoded patches, and a linear layer classifies the result."""

    def __init__(self, options: ImageOptions, classes: int) -> None:
        super().__init__()
        self.encoder = ImageEncoder(options)
        self.pool = Pool(options.width)
        self.dropout = Dropout(options.dropout)
        self.output = nn.Linear(options.width, whole_number("ImageModel", "classes", classes, minimum=1))

    def forward(self, pictures: Tensor, weights: bool = False) -> ImageModelOutput:
        """Classify images [B, C, height, width]."""
        pooled = self.pool(self.encoder(pictures), weights=weights)
        return ImageModelOutput(self.output(self.dropout(pooled.context)), pooled.weights)

    def attentions(self, pictures: Tensor) -> dict[str, Tensor]:
        """Return all weights: "encoder" [B, layers, heads, S, S], "pool" [B, 1, 1, 1, S]."""
        layers: list[Tensor] = []
        pooled = self.pool(self.encoder(pictures, weights_out=layers), weights=True)
        encoder = {"encoder": torch.stack(layers, 1)} if layers else {}
        return encoder | {"pool": pooled.weights[:, None, None, None]}
