"""The Transformer (Vaswani et al. 2017): an encoder and a decoder built of attention, with any score and any pattern.

    encoder   x ← embedding √D + position;   each block: self-attention, feed-forward
    decoder   y ← embedding √D + position;   each block: causal self-attention, cross-attention to x, feed-forward
    output    p(y_t) = softmax(E o_t)

B sentences, S source positions, T target positions, k hypotheses per sentence, D features, L layers, H heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from regard.core.checks import choices, whole_number
from regard.core.kernels.gpu.kernels import why_no_triton
from regard.core.multihead import MultiHeadMemory
from regard.models.decoded import Decoded, mix_in
from regard.models.dropout import Dropout
from regard.models.embedding import Embedding, Tie, tie
from regard.models.training_sizes import TransformerSizes
from regard.models.transformer.layers import AttentionOptions, DecoderBlock, EncoderBlock, Shape, WeightsOut
from regard.models.transformer.positions import Kind, Positions
from regard.models.transformer.step import TransformerState, TransformerSteps

DROPOUT, SMALL_CORPUS_DROPOUT = 0.3, 0.2


@dataclass(frozen=True)
class TransformerOptions(TransformerSizes):
    """The options of a Transformer: the section `model` of a recipe."""

    kind: Literal["transformer"] = "transformer"
    width: int = 256
    heads: int = 4
    feedforward: int = 1024
    encoder_layers: int = 3
    decoder_layers: int = 3
    norm: Literal["pre", "post"] = "pre"
    activation: Literal["relu", "gelu"] = "relu"
    positions: Kind = "sinusoidal"
    longest: int = 512
    """the number of positions that are learned, where positions are learned"""
    tie: Tie = "target"
    """the output layer is the target embedding; with "all" the source embedding too"""
    dropout: float | None = None
    """None: 0.3, or 0.2 for a translator trained on fewer than 5,000 pairs"""
    attention_dropout: float = 0.0
    """the fraction of attention weights that are dropped in training"""
    encoder: AttentionOptions = field(default_factory=AttentionOptions)
    """self-attention of the encoder"""
    decoder: AttentionOptions = field(default_factory=AttentionOptions)
    """self-attention of the decoder; its pattern is made causal"""
    cross: AttentionOptions = field(default_factory=AttentionOptions)
    """cross-attention: from the target to the source"""

    def __post_init__(self) -> None:
        for name in ("encoder_layers", "decoder_layers", "longest"):
            whole_number("model", name, getattr(self, name), minimum=1)
        choices("model", self)
        assert self.shape  # which checks the rest

    @property
    def shape(self) -> Shape:
        """The sizes and options that all blocks share."""
        rotary = self.positions == "rotary"
        shared = (self.width, self.heads, self.feedforward, self.norm, self.activation)
        return Shape(*shared, rotary, DROPOUT if self.dropout is None else self.dropout, self.attention_dropout)


class SourceEncoder(Protocol):
    """A module that encodes a source as states: `TransformerEncoder` for text, `ImageEncoder` for images."""

    def __call__(self, source: Tensor, lengths: Tensor | None, weights_out: WeightsOut = None) -> Tensor:
        """Return states [B, S, D] of a source of `lengths` [B] (None: no padding); weights are [B, H, S, S]."""


class TokenEmbedding(nn.Module):
    """Maps tokens [..., N] to embedding √D + position [..., N, D]."""

    def __init__(self, options: TransformerOptions, vocabulary: int) -> None:
        super().__init__()
        self.embedding = Embedding(vocabulary, options.width, padding_idx=0)
        self.positions = Positions(options.positions, options.width, options.longest)
        self.dropout = Dropout(options.shape.dropout)
        self.scale = math.sqrt(options.width)

    def forward(self, tokens: Tensor, position: int | Tensor = 0) -> Tensor:
        embedded: Tensor = self.dropout(self.positions(self.embedding(tokens) * self.scale, position))
        return embedded


class TransformerEncoder(TokenEmbedding):
    """The encoder: embeddings, then blocks of self-attention and feed-forward networks."""

    def __init__(self, options: TransformerOptions, vocabulary: int) -> None:
        super().__init__(options, vocabulary)
        self.heads = options.heads
        self.blocks = nn.ModuleList(EncoderBlock(options.shape, options.encoder) for _ in range(options.encoder_layers))
        self.norm = nn.LayerNorm(options.width) if options.norm == "pre" else nn.Identity()

    def forward(self, source: Tensor, lengths: Tensor | None, weights_out: WeightsOut = None) -> Tensor:  # type: ignore[override]
        states = super().forward(source)
        bias = self.positions.bias(self.heads, states.shape[1], states.shape[1], states.device)
        for block in self.blocks:
            states = block(states, lengths, bias, weights_out)
        normalized: Tensor = self.norm(states)
        return normalized


class Transformer(nn.Module):
    """The whole encoder–decoder: `forward` for training, `start` and `step` for search."""

    def __init__(
        self, options: TransformerOptions, source_vocabulary: int, target_vocabulary: int,
        encoder: nn.Module | None = None,
    ) -> None:  # fmt: skip
        """`encoder` is a `SourceEncoder` that replaces the encoder of tokens."""
        super().__init__()
        self.options = options
        self.encoder = TransformerEncoder(options, source_vocabulary) if encoder is None else encoder
        self.embedded = TokenEmbedding(options, target_vocabulary)
        self.blocks = nn.ModuleList(
            DecoderBlock(options.shape, options.decoder, options.cross) for _ in range(options.decoder_layers)
        )
        self.norm = nn.LayerNorm(options.width) if options.norm == "pre" else nn.Identity()
        self.output = nn.Linear(options.width, target_vocabulary)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2 and not name.endswith("table"):
                nn.init.xavier_uniform_(parameter)
        source = getattr(self.encoder, "embedding", self.embedded.embedding)
        tie(options.tie, source, self.embedded.embedding, self.output)

    @property
    def _layers(self) -> list[DecoderBlock]:
        return list(self.blocks)  # type: ignore[arg-type]

    # Training

    def forward(
        self, source: Tensor, lengths: Tensor, target: Tensor, sampling: float = 0.0, weights: bool = False
    ) -> Decoded:
        """Decode target [B, T], which begins with the start token, given source [B, S] of `lengths` [B].

        `sampling` is the fraction of target tokens that are replaced by the model's own predictions from a first pass
        over the target (Mihaylova and Martins 2019). With `weights`, those of the alignment head are returned.
        """
        memory = self._encode(source, lengths)
        if sampling > 0:
            target = self._mix_in_predictions(memory, target, sampling)
        cross: WeightsOut = [] if weights else None
        output = self._decode(memory, target, cross_weights_out=cross)
        return Decoded(self.embedded.dropout(output), cross[self.alignment_layer][:, 0] if cross else None)

    @property
    def alignment_layer(self) -> int:
        """The layer whose first head can be trained on word alignments: the last but one (Garg et al. 2019)."""
        return max(0, self.options.decoder_layers - 2)

    @property
    def source_embeddings(self) -> tuple[nn.Module, ...]:
        """The modules that embed the source's tokens: one."""
        embedding: nn.Module = self.encoder.embedding  # type: ignore[assignment]
        return (embedding,)

    @property
    def reinforced(self) -> bool:
        """Is hard attention trained by REINFORCE? Never here: it is trained by the straight-through estimator."""
        return False

    def can_capture(self, device: torch.device) -> bool:
        """Can a CUDA graph capture an update? It can if nothing in it synchronizes with the host and no cached tensor
        that the graph reads is evicted. The block lists of long texts are computed with the first batch of a shape,
        which is not captured (runtime/device_cache.py)."""
        options = self.options
        standard = all(each.is_standard for each in (options.encoder, options.decoder, options.cross))
        plain = standard and options.positions != "alibi" and not options.attention_dropout
        return plain and why_no_triton(device) is None

    def logits(self, output: Tensor) -> Tensor:
        """Return the logits [..., V] of outputs o [..., D]."""
        logits: Tensor = self.output(output)
        return logits

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return all weights: "encoder" [B, L, H, S, S], "decoder" [B, L, H, T, T], "cross" [B, L, H, T, S]."""
        encoder, decoder, cross = [], [], []  # type: list[Tensor], list[Tensor], list[Tensor]
        memory = self._encode(source, lengths, encoder)
        self._decode(memory, target, decoder, cross)
        by_name = {"encoder": encoder, "decoder": decoder, "cross": cross}
        return {name: torch.stack(layers, 1) for name, layers in by_name.items() if layers}

    def _encode(self, source: Tensor, sizes: Tensor, weights_out: WeightsOut = None) -> tuple[MultiHeadMemory, ...]:
        """Encode a source of `sizes` [B]; return the keys and values of cross-attention for each layer."""
        # Without padding no lengths are needed. Sizes on a GPU are not read: that would synchronize with it.
        unpadded = not sizes.is_cuda and int(sizes.min()) == source.shape[1]
        lengths = None if unpadded else sizes.to(source.device)
        states = self.encoder(source, lengths, weights_out)
        return tuple(block.cross.remember(states, lengths=lengths) for block in self._layers)

    def _decode(
        self, memory: tuple[MultiHeadMemory, ...], target: Tensor,
        self_weights_out: WeightsOut = None, cross_weights_out: WeightsOut = None,
    ) -> Tensor:  # fmt: skip
        """Return the outputs o [B, T, D] of target tokens [B, T] under teacher forcing."""
        states = self.embedded(target)
        bias = self.embedded.positions.bias(self.options.heads, states.shape[1], states.shape[1], states.device)
        for block, source in zip(self._layers, memory, strict=True):
            states = block(states, source, bias, self_weights_out, cross_weights_out)
        output: Tensor = self.norm(states)
        return output

    def _mix_in_predictions(self, memory: tuple[MultiHeadMemory, ...], target: Tensor, sampling: float) -> Tensor:
        """Return target [B, T] with a fraction of its tokens predicted by the model; start and padding stay."""
        with torch.no_grad():
            predicted = self.logits(self._decode(memory, target)).argmax(-1)[:, :-1]
        return torch.cat([target[:, :1], mix_in(predicted, target[:, 1:], sampling)], 1)

    # Search

    def packed_decoder(self) -> TransformerSteps:
        """Return the decoder with packed weights, for many searches without gradients."""
        return TransformerSteps(self._layers, self.output, biased=self.options.positions == "alibi")

    def start(self, source: Tensor, lengths: Tensor, packed: TransformerSteps | None = None) -> TransformerState:
        """Return the state of one hypothesis per sentence, before its first token."""
        memory = tuple(each.prepare() for each in self._encode(source, lengths))
        no_states = self.embedded.embedding.weight.new_zeros(len(source), 0, self.options.width)
        caches = tuple(block.attend.remember(no_states).prepare() for block in self._layers)
        return TransformerState(caches, memory, self.packed_decoder() if packed is None else packed)

    def step(self, state: TransformerState, tokens: Tensor) -> tuple[Tensor, Tensor, TransformerState]:
        """Feed the last tokens [B, k]; return (logits [B, k, V], weights [B, k, L, H, S], the next state)."""
        rows, position = tokens.numel(), state.position
        caches, cross_weights = [], []
        with torch.autocast(tokens.device.type, enabled=False):  # weights and caches were cast when they were packed
            states = self.embedded(tokens.reshape(rows, 1), state.next_position)  # [B · k, 1, D]
            bias = self.embedded.positions.bias(self.options.heads, 1, position + 1, states.device)
            for block, cache, source in zip(state.packed.blocks, state.caches, state.memory, strict=True):
                states, new_cache, weights = block(states, cache, source, tokens.shape[1], position, bias)
                caches.append(new_cache)
                cross_weights.append(weights)
            logits = state.packed.output(self.norm(states).view(*tokens.shape, -1))
        return logits, torch.stack(cross_weights, 2), replace(state, caches=tuple(caches), position=position + 1)
