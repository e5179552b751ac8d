"""Encoder and decoder with attention: Bahdanau et al. 2015, Luong et al. 2015, and what lies between.

    encoder   h_1 … h_S = RNN(x_1 … x_S), one or two directions
    Bahdanau  c_t = attend(s_{t−1}, h);   s_t = RNN([y_{t−1}; c_t], s_{t−1})          attend, then step
    Luong     s_t = RNN([y_{t−1}; o_{t−1}], s_{t−1});   c_t = attend(s_t, h)          step, then attend
    output    o_t = tanh(W [s_t; c_t]),   p(y_t) = softmax(E o_t)

Without input feeding the RNN sees y alone, so that all its steps, and all of attention, run at once.
B sentences, S source positions, T target positions, k hypotheses a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.core.attention import Attention
from regard.core.checks import choices, share, whole_number
from regard.core.kernels.gpu.kernels import without_kernels
from regard.core.local import LocalPredictive, heads_of
from regard.core.memory import Memory
from regard.core.normalizers import Hard, Normalizer
from regard.core.pattern_text import parse
from regard.core.patterns import Pattern
from regard.core.scores import Additive, Cosine, Dot, Score, wide
from regard.models.decoded import Decoded
from regard.models.dropout import Dropout
from regard.models.embedding import Embedding
from regard.models.recurrent import cells
from regard.models.recurrent.cells import Hidden
from regard.models.recurrent.decoder_loop import Weights as LoopWeights
from regard.models.recurrent.decoder_loop import decode
from regard.models.recurrent.encoder import Encoder
from regard.models.recurrent.step import State, Steps, weights_of
from regard.models.tying import Tie, tie


@dataclass(frozen=True)
class RecurrentOptions:
    """What can be chosen."""

    kind: Literal["rnn"] = "rnn"
    cell: Literal["gru", "lstm"] = "gru"
    embedding: int = 256
    encoder: int = 256
    """features of each direction"""
    encoder_layers: int = 1
    bidirectional: bool = True
    decoder: int = 512
    decoder_layers: int = 1
    order: Literal["bahdanau", "luong"] = "luong"
    input_feeding: bool = True
    bridge: bool = True
    """start the decoder from the encoder's last state"""
    score: Literal["additive", "general", "dot", "scaled_dot", "cosine"] = "additive"
    attention: int = 512
    """hidden features of the additive score"""
    pattern: str = "full"
    """which source positions a step may look at, as text; `window(D)` is Luong's monotonic local attention"""
    predictive: int = 0
    """D of Luong's predictive local attention; 0: none"""
    normalizer: Literal["softmax", "sparsemax", "entmax15", "hard"] = "softmax"
    estimator: Literal["straight_through", "gumbel", "reinforce"] = "straight_through"
    """how hard attention is trained"""
    readout: int = 0
    """features of o; 0: as wide as the embedding that is the output layer, or as the decoder where none is"""
    tie: Tie = "target"
    """the output layer is the target embedding; with "all" the source embedding too"""
    dropout: float = 0.3

    def __post_init__(self) -> None:
        for name in ("embedding", "encoder", "encoder_layers", "decoder", "decoder_layers", "attention"):
            whole_number("model", name, getattr(self, name), least=1)
        whole_number("model", "predictive", self.predictive)
        whole_number("model", "readout", self.readout)
        if self.tie != "none" and self.readout not in (0, self.embedding):
            raise ValueError(
                f"model.readout: expected {self.embedding}, as the embedding, which is the output layer too "
                f'(or tie = "none"), got {self.readout}'
            )
        share("model.dropout", self.dropout)
        choices("model", self)
        heads = heads_of(parse(self.pattern))
        if heads is not None:
            raise ValueError(f"model.pattern: expected one pattern, as there is one head, got {heads}")


class Recurrent(nn.Module):
    """The whole translator: `forward` for training, `start` and `step` for search."""

    def __init__(self, options: RecurrentOptions, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.options = options
        states = options.encoder * (2 if options.bidirectional else 1)
        self.encoder = Encoder(
            options.cell,
            source_vocabulary,
            options.embedding,
            options.encoder,
            options.encoder_layers,
            options.bidirectional,
            options.dropout,
        )
        self.embedding = Embedding(target_vocabulary, options.embedding, padding_idx=0)
        size = options.readout or (options.embedding if options.tie != "none" else options.decoder)
        fed = 0 if not options.input_feeding else states if options.order == "bahdanau" else size
        self.recurrence = cells.recurrence(
            options.cell, options.embedding + fed, options.decoder, options.decoder_layers, options.dropout
        )
        self.attend = Attention(_score(options, states), _pattern(options, states), _normalizer(options))
        # W of additive and general scores: a linear map of every step, so it stands here and not in the score.
        wide = {"additive": options.attention, "general": states}.get(options.score)
        self.query = None if wide is None else nn.Linear(options.decoder, wide, bias=False)
        self.bridge = nn.Linear(states, options.decoder) if options.bridge else None
        self.combine = nn.Linear(options.decoder + states, size)
        self.output = nn.Linear(size, target_vocabulary)
        self.dropout = Dropout(options.dropout)
        tie(options.tie, self.encoder.embedding, self.embedding, self.output)

    # Training

    def forward(
        self, source: Tensor, lengths: Tensor, target: Tensor, sampling: float = 0.0, weights: bool = False
    ) -> Decoded:
        """source [B, S] of `lengths` [B]; target [B, T], beginning with the start token.

        `sampling` is the share of target tokens that the decoder is fed from its own predictions instead (scheduled
        sampling, Bengio et al. 2015).
        """
        states, last = self.encoder(source, lengths)
        memory = self.attend.remember(states, lengths=lengths)
        hidden = self._first(states, last)
        if sampling == 0 and self._runs_as_one(states):
            return self._as_one(memory, hidden[0][0], target, weights)
        if self.options.input_feeding or sampling > 0:
            return self._step_by_step(memory, hidden, target, sampling, weights)
        return self._all_at_once(memory, hidden, target, weights)

    @property
    def source_embedding(self) -> nn.Module:
        return self.encoder.embedding

    @property
    def reinforced(self) -> bool:
        """Is hard attention rewarded for its choices?"""
        return self.options.estimator == "reinforce"

    def recordable(self, device: torch.device) -> bool:
        """Does a loss on the device depend on what lies there alone, never asked for by the host? Of the kinds of this
        model that is so where all steps are one function."""
        return self._usual and self.encoder.never_waits(device)

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        """What there is beside the attention to the source: nothing."""
        return {}

    def logits(self, output: Tensor) -> Tensor:
        """o [..., O] → [..., V]"""
        logits: Tensor = self.output(output)
        return logits

    def _first(self, states: Tensor, last: tuple[Tensor, ...]) -> tuple[Hidden, ...]:
        """s_0 of each layer: the bridge from the encoder's last state, or 0."""
        layers = self.options.decoder_layers
        if self.bridge is None:
            zero = wide(states[:, 0, :0]).new_zeros(states.shape[0], self.options.decoder)
            return tuple((zero,) * len(last) for _ in range(layers))
        begun = [torch.tanh(wide(self.bridge(x))) for x in last]  # [encoder layers, B, H]
        return tuple(tuple(x[min(layer, len(x) - 1)] for x in begun) for layer in range(layers))

    def _all_at_once(self, memory: Memory, hidden: tuple[Hidden, ...], target: Tensor, weights: bool) -> Decoded:
        joined = tuple(torch.stack(parts) for parts in zip(*hidden, strict=True))  # each [layers, B, H]
        embedded = self.dropout(self.embedding(target))  # [B, T, D]
        states, _ = self.recurrence(embedded, joined if len(joined) > 1 else joined[0])  # [B, T, H]
        query = states
        if self.options.order == "bahdanau":
            query = torch.cat([hidden[-1][0][:, None].to(states.dtype), states[:, :-1]], 1)
        seen = memory.read(query if self.query is None else self.query(query), weights=weights)
        output = torch.tanh(self.combine(torch.cat([states, seen.context.to(states.dtype)], -1)))
        return Decoded(self.dropout(output), seen.weights, seen.log_probability)

    @property
    def _usual(self) -> bool:
        """Is it the decoder whose steps a GPU has one function for?"""
        options = self.options
        kind = (options.cell, options.order, options.score, options.normalizer, options.pattern)
        plain = options.decoder_layers == 1 and options.input_feeding and not options.predictive
        return plain and kind == ("gru", "luong", "additive", "softmax", "full")

    def _runs_as_one(self, states: Tensor) -> bool:
        return self._usual and states.dtype is torch.float32 and without_kernels(states.device) is None

    def _as_one(self, memory: Memory, hidden: Tensor, target: Tensor, weights: bool) -> Decoded:
        score = self.attend.score
        assert isinstance(score, Additive) and self.query is not None
        weight, bias = weights_of(self.recurrence, "ih", 0)
        by_word, by_feed = weight.split([self.options.embedding, self.combine.out_features], 1)
        by_state, state_bias = weights_of(self.recurrence, "hh", 0)
        gates = wide(linear(self.dropout(self.embedding(target)).transpose(0, 1), by_word, bias))  # [T, B, 3H]
        lengths = memory.lengths
        if lengths is None:
            lengths = torch.full((len(target),), memory.keys, device=target.device)
        shared = (
            by_feed,
            by_state,
            state_bias,
            self.query.weight,
            score.vector,
            self.combine.weight,
            self.combine.bias,
        )
        outputs, seen = decode(gates, hidden, wide(memory.key), wide(memory.value), lengths, LoopWeights(*shared))
        return Decoded(self.dropout(outputs.transpose(0, 1)), seen.transpose(0, 1) if weights else None)

    def _step_by_step(
        self, memory: Memory, hidden: tuple[Hidden, ...], target: Tensor, sampling: float, weights: bool
    ) -> Decoded:
        steps = Steps(self)
        gates = steps.gates(self.dropout(self.embedding(target))).unbind(1)  # T of [B, 3H or 4H]
        output = gates[0].new_zeros(target.shape[0], self.combine.out_features)
        output_each_step = self.options.order == "luong" or sampling > 0
        outputs, seen = [], []
        for t, now in enumerate(gates):
            if sampling > 0 and t > 0:
                now = steps.gates(self.dropout(self.embedding(self._sampled(target[:, t], output, sampling))))
            hidden, joined, result = steps(now, hidden, output, memory, t, weights)
            output = steps.output(joined) if output_each_step else joined
            outputs.append(output)
            seen.append(result)
        output = torch.stack(outputs, 1)  # [B, T, O]
        if not output_each_step:
            output = torch.tanh(self.combine(output))
        return Decoded(
            self.dropout(output),
            torch.cat([x.weights for x in seen if x.weights is not None], -2) if weights else None,
            torch.cat([x.log_probability for x in seen if x.log_probability is not None], -1)
            if seen[0].log_probability is not None
            else None,
        )

    def _sampled(self, target: Tensor, output: Tensor, sampling: float) -> Tensor:
        """The target's tokens [B], a share of them replaced by the decoder's own; padding stays."""
        with torch.no_grad():
            own = self.logits(output).argmax(-1)
        coin = torch.rand(target.shape, device=target.device) < sampling
        return torch.where(coin & (target != 0), own, target)

    # Search

    def steps(self) -> Steps:
        """The decoder's steps, for one pass, or for many searches without gradients."""
        return Steps(self)

    def start(self, source: Tensor, lengths: Tensor, steps: Steps | None = None) -> State:
        """One hypothesis for each sentence, before its first token."""
        states, last = self.encoder(source, lengths)
        memory = self.attend.remember(states[:, None], lengths=lengths[:, None])
        hidden = tuple(tuple(x[:, None] for x in layer) for layer in self._first(states, last))
        feed = states.new_zeros(source.shape[0], 1, self.combine.out_features)
        return State(hidden, feed, memory, self.steps() if steps is None else steps)

    def step(self, state: State, tokens: Tensor) -> tuple[Tensor, Tensor, State]:
        """The last tokens [B, k] → (logits [B, k, V], weights [B, k, 1, 1, S], the next state)."""
        steps = state.steps
        gates = steps.gates(self.embedding(tokens))
        hidden, joined, seen = steps(gates, state.hidden, state.feed, state.memory, state.position, weights=True)
        output = steps.output(joined)
        assert seen.weights is not None
        after = replace(state, hidden=hidden, feed=output, position=state.position + 1)
        return steps.logits(output), seen.weights[:, :, None], after


def _score(options: RecurrentOptions, states: int) -> Score | str:
    """The score, of queries that are projected already."""
    if options.score == "additive":
        return Additive(None, states, options.attention)
    if options.score == "general":
        return Dot()
    if options.decoder != states:
        raise ValueError(
            f"score: {options.score!r} needs a decoder as wide as the encoder's states, "
            f"got decoder = {options.decoder} and states of {states}"
        )
    return Cosine(learned=True) if options.score == "cosine" else options.score


def _pattern(options: RecurrentOptions, states: int) -> Pattern | LocalPredictive:
    pattern = parse(options.pattern)
    if not options.predictive:
        return pattern
    query = {"additive": options.attention, "general": states}.get(options.score, options.decoder)
    return LocalPredictive(query, options.predictive, within=pattern)


def _normalizer(options: RecurrentOptions) -> Normalizer | str:
    return Hard(options.estimator) if options.normalizer == "hard" else options.normalizer
