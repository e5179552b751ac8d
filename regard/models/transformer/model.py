"""The Transformer (Vaswani et al. 2017): encoder and decoder of attention alone, with any score and any pattern.

    encoder   x ← embedding √D + position;   each block: self-attention, feed-forward
    decoder   y ← embedding √D + position;   each block: self-attention to what was said, attention to x, feed-forward
    output    p(y_t) = softmax(E o_t)

B sentences, S source positions, T target positions, k hypotheses a sentence, D features, L layers, H heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from regard.core import single
from regard.core.checks import choices, whole_number
from regard.core.kernels.gpu.kernels import without_kernels
from regard.core.multihead import MultiHeadMemory
from regard.core.static_cache import HeldMemory, can_be_static
from regard.models.decoded import Decoded
from regard.models.dropout import Dropout
from regard.models.embedding import Embedding
from regard.models.transformer.decoder_step import SelfAttentionCache, Steps
from regard.models.transformer.layers import DecoderBlock, EncoderBlock, Looking, Shape
from regard.models.transformer.positions import FURTHEST, Kind, Positions, alibi
from regard.models.tying import Tie, tie

DROPOUT = 0.3


@dataclass(frozen=True)
class TransformerOptions:
    """What can be chosen."""

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
    """how many positions are learned, if they are"""
    tie: Tie = "target"
    """the output layer is the target embedding; with "all" the source embedding too"""
    dropout: float | None = None
    """None: 0.3; of a translator from fewer than 5,000 pairs 0.1"""
    attention_dropout: float = 0.0
    """the share of weights that are dropped"""
    encoder: Looking = field(default_factory=Looking)
    """how the source looks at itself"""
    decoder: Looking = field(default_factory=Looking)
    """how the target looks at what was said before: the pattern, and not ahead"""
    cross: Looking = field(default_factory=Looking)
    """how the target looks at the source"""

    def __post_init__(self) -> None:
        for name in ("encoder_layers", "decoder_layers", "longest"):
            whole_number("model", name, getattr(self, name), least=1)
        choices("model", self)
        assert self.shape  # which checks the rest

    @property
    def shape(self) -> Shape:
        """What all blocks share."""
        rotary = self.positions == "rotary"
        shared = (self.width, self.heads, self.feedforward, self.norm, self.activation)
        return Shape(*shared, rotary, DROPOUT if self.dropout is None else self.dropout, self.attention_dropout)


class Encoding(Protocol):
    """What turns a source into states: of text the encoder below, of pictures another."""

    def __call__(self, source: Tensor, lengths: Tensor | None, seen: list[Tensor] | None = None) -> Tensor:
        """source, of `lengths` [B], None: no padding → states [B, S, D]; weights [B, H, S, S] go into `seen`."""


class Embedded(nn.Module):
    """Tokens [..., N] → embedding √D + position [..., N, D]."""

    def __init__(self, options: TransformerOptions, vocabulary: int) -> None:
        super().__init__()
        self.embedding = Embedding(vocabulary, options.width, padding_idx=0)
        self.positions = Positions(options.positions, options.width, options.longest)
        self.dropout = Dropout(options.shape.dropout)
        self.scale = math.sqrt(options.width)

    def forward(self, tokens: Tensor, position: int | Tensor = 0) -> Tensor:
        found: Tensor = self.dropout(self.positions(self.embedding(tokens) * self.scale, position))
        return found


class Encoder(Embedded):
    def __init__(self, options: TransformerOptions, vocabulary: int) -> None:
        super().__init__(options, vocabulary)
        self.heads = options.heads
        self.blocks = nn.ModuleList(EncoderBlock(options.shape, options.encoder) for _ in range(options.encoder_layers))
        self.norm = nn.LayerNorm(options.width) if options.norm == "pre" else nn.Identity()

    def forward(  # type: ignore[override]
        self, source: Tensor, lengths: Tensor | None, seen: list[Tensor] | None = None
    ) -> Tensor:
        states = super().forward(source)
        bias = _alibi(self.positions, self.heads, states.shape[1], states.device)
        for block in self.blocks:
            states = block(states, lengths, bias, seen)
        found: Tensor = self.norm(states)
        return found


@dataclass(frozen=True)
class State:
    """k unfinished hypotheses of B sentences. Never changed: a step returns a new one."""

    caches: tuple[SelfAttentionCache, ...]
    """of each layer, the KV cache of self-attention: keys [B · k, H, t, D / H]"""
    memory: tuple[MultiHeadMemory, ...]
    """of each layer, the source: keys [B, H, S, D / H], which hypotheses share"""
    steps: Steps
    hypotheses: int = 1
    """k"""
    position: int = 0

    def select(self, parents: Tensor) -> State:
        """Return the hypotheses [B, k'] of each sentence, in the given order."""
        if self.hypotheses == 1 and parents.shape[1] == 1:
            return self
        caches = tuple(each.select(self.rows(parents)) for each in self._growing_caches)
        return replace(self, caches=caches, hypotheses=parents.shape[1])

    def rows(self, parents: Tensor) -> Tensor:
        """Return the rows of the caches [B · k, …] that belong to the hypotheses [B, k']."""
        first = torch.arange(len(parents), device=parents.device)[:, None] * self.hypotheses
        return (first + parents).flatten()

    def keep(self, sentences: Tensor) -> State:
        """Return the state of these sentences [B'] alone, in the given order."""
        slots = torch.arange(self.hypotheses, device=sentences.device)
        rows = (sentences[:, None] * self.hypotheses + slots).flatten()
        return replace(
            self,
            caches=tuple(each.select(rows) for each in self._growing_caches),
            memory=tuple(each.select(sentences) for each in self.memory),
        )

    def changed(self, change: Callable[[Tensor], Tensor]) -> State:
        """Return the state with every weight on the source changed before it is used."""
        return replace(self, memory=tuple(each.changed(change) for each in self.memory))

    def static(self, steps: int) -> Held | None:
        """Return a copy in static buffers with room for so many steps; None if that is impossible."""
        caches = self._growing_caches
        still = all(map(can_be_static, caches)) and all(each.memory.reads_alike for each in self.memory)
        few = self.hypotheses <= single.FEW  # more are read by a plan, which may ask the device
        if not (still and few) or self.steps.biased or self.position + steps > FURTHEST:
            return None
        count = torch.full((1,), self.position, device=self.memory[0].memory.key.device)
        static = tuple(HeldMemory.of(each, count, self.position + steps) for each in caches)
        return Held(replace(self, caches=static))

    @property
    def place(self) -> int | Tensor:
        """the position of the next token; of a static state it is on the device, [1]"""
        cache = self.caches[0]
        return cache.count if isinstance(cache, HeldMemory) else self.position

    @property
    def _growing_caches(self) -> list[MultiHeadMemory]:
        """the caches of a state that is not static"""
        assert not any(isinstance(each, HeldMemory) for each in self.caches)
        return list(self.caches)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Held:
    """A state in static buffers, which a CUDA graph updates in place."""

    state: State

    def update_(self, after: State, parents: Tensor) -> None:
        """Reorder the caches by the hypotheses [B, k] that a step continues."""
        if self.state.hypotheses > 1:
            rows = self.state.rows(parents)
            for each in self.state.caches:
                assert isinstance(each, HeldMemory)
                each.reorder_(rows)
        assert isinstance(self.state.place, Tensor)  # which all layers share
        self.state.place.add_(1)

    def snapshot(self, steps: int) -> State:
        """Return the state after so many steps, as one that is never changed."""
        position = self.state.position + steps
        caches = tuple(each.snapshot(position) for each in self.state.caches if isinstance(each, HeldMemory))
        return replace(self.state, caches=caches, position=position)


class Transformer(nn.Module):
    """The whole translator: `forward` for training, `start` and `step` for search."""

    def __init__(
        self,
        options: TransformerOptions,
        source_vocabulary: int,
        target_vocabulary: int,
        encoder: nn.Module | None = None,
    ) -> None:
        """`encoder`: an `Encoding` in the place of that of tokens."""
        super().__init__()
        self.options = options
        self.encoder = Encoder(options, source_vocabulary) if encoder is None else encoder
        self.embedded = Embedded(options, target_vocabulary)
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
        """source [B, S] of `lengths` [B]; target [B, T], beginning with the start token.

        `sampling` is the share of target tokens that are the model's own predictions, from a first pass over the
        target, instead (Mihaylova and Martins 2019). `weights` are those of the aligning head.
        """
        memory = self._remembered(source, lengths)
        if sampling > 0:
            target = self._sampled(memory, target, sampling)
        seen: list[Tensor] | None = [] if weights else None
        output = self._decoded(memory, target, seen=seen)
        return Decoded(self.embedded.dropout(output), seen[self.aligning_layer][:, 0] if seen else None)

    @property
    def aligning_layer(self) -> int:
        """Whose first head may be told where to look: of the last layer but one (Garg et al. 2019)."""
        return max(0, self.options.decoder_layers - 2)

    @property
    def source_embedding(self) -> nn.Module:
        """What looks at the source first, and what it gives is what a source is made of."""
        found: nn.Module = self.encoder.embedding  # type: ignore[assignment]
        return found

    @property
    def reinforced(self) -> bool:
        """Is hard attention rewarded for its choices? Here it is trained straight through."""
        return False

    def recordable(self, device: torch.device) -> bool:
        """Does a loss on the device depend on what lies there alone, never asked for by the host, and never dropped?
        Lists of blocks of long texts are made with the first batch of a shape, which is not recorded (core/kept.py)."""
        options = self.options
        looks = (options.encoder, options.decoder, options.cross)
        usual = all((look.score, look.pattern, look.normalizer) == ("scaled_dot", "full", "softmax") for look in looks)
        return (
            without_kernels(device) is None and usual and options.positions != "alibi" and not options.attention_dropout
        )

    def logits(self, output: Tensor) -> Tensor:
        """o [..., D] → [..., V]"""
        logits: Tensor = self.output(output)
        return logits

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        """All weights, for a trace: "encoder" [B, L, H, S, S], "decoder" [B, L, H, T, T], "cross" [B, L, H, T, S]."""
        encoder, decoder, cross = [], [], []  # type: list[Tensor], list[Tensor], list[Tensor]
        memory = self._remembered(source, lengths, encoder)
        self._decoded(memory, target, decoder, cross)
        named = {"encoder": encoder, "decoder": decoder, "cross": cross}
        return {name: torch.stack(found, 1) for name, found in named.items() if found}

    def _remembered(
        self, source: Tensor, sizes: Tensor, seen: list[Tensor] | None = None
    ) -> tuple[MultiHeadMemory, ...]:
        """The source, of `sizes` [B], as each layer of the decoder looks at it."""
        # Where nothing is padding, no attention needs to be told so. Asking a GPU would be to wait for it.
        whole = not sizes.is_cuda and int(sizes.min()) == source.shape[1]
        lengths = None if whole else sizes.to(source.device)
        states = self.encoder(source, lengths, seen)
        return tuple(block.cross.remember(states, lengths=lengths) for block in self._layers)

    def _decoded(
        self,
        memory: tuple[MultiHeadMemory, ...],
        target: Tensor,
        own: list[Tensor] | None = None,
        seen: list[Tensor] | None = None,
    ) -> Tensor:
        """o [B, T, D]"""
        states = self.embedded(target)
        bias = _alibi(self.embedded.positions, self.options.heads, states.shape[1], states.device)
        for block, source in zip(self._layers, memory, strict=True):
            states = block(states, source, bias, own, seen)
        output: Tensor = self.norm(states)
        return output

    def _sampled(self, memory: tuple[MultiHeadMemory, ...], target: Tensor, sampling: float) -> Tensor:
        """The target's tokens [B, T], a share of them replaced by the model's own; start and padding stay."""
        with torch.no_grad():
            own = self.logits(self._decoded(memory, target)).argmax(-1)[:, :-1]
        coin = torch.rand(own.shape, device=own.device) < sampling
        mixed = torch.where(coin & (target[:, 1:] != 0), own, target[:, 1:])
        return torch.cat([target[:, :1], mixed], 1)

    # Search

    def steps(self) -> Steps:
        """The decoder's steps, ready for many searches without gradients."""
        return Steps(self._layers, self.output, biased=self.options.positions == "alibi")

    def start(self, source: Tensor, lengths: Tensor, steps: Steps | None = None) -> State:
        """One hypothesis for each sentence, before its first token."""
        memory = tuple(each.ready() for each in self._remembered(source, lengths))
        nothing = self.embedded.embedding.weight.new_zeros(len(source), 0, self.options.width)
        caches = tuple(block.attend.remember(nothing).ready() for block in self._layers)
        return State(caches, memory, self.steps() if steps is None else steps)

    def step(self, state: State, tokens: Tensor) -> tuple[Tensor, Tensor, State]:
        """The last tokens [B, k] → (logits [B, k, V], weights [B, k, L, H, S], the next state)."""
        rows, position = tokens.numel(), state.position
        caches, seen = [], []
        with torch.autocast(tokens.device.type, enabled=False):  # what is narrow was made so at the start
            states = self.embedded(tokens.reshape(rows, 1), state.place)  # [B · k, 1, D]
            bias = _alibi(self.embedded.positions, self.options.heads, position + 1, states.device, queries=1)
            for block, before, source in zip(state.steps.blocks, state.caches, state.memory, strict=True):
                states, longer, weights = block(states, before, source, tokens.shape[1], position, bias)
                caches.append(longer)
                seen.append(weights)
            logits = state.steps.output(self.norm(states).view(*tokens.shape, -1))
        return logits, torch.stack(seen, 2), replace(state, caches=tuple(caches), position=position + 1)


def _alibi(
    positions: Positions, heads: int, keys: int, device: torch.device, queries: int | None = None
) -> Tensor | None:
    """[H, T, S] of the last `queries`, if positions are told that way; None: as many queries as keys."""
    if positions.kind != "alibi":
        return None
    count = keys if queries is None else queries
    return alibi(heads, count, keys, keys - count, device)
