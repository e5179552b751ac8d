"""The recurrent encoder–decoder with attention: Bahdanau et al. 2015, Luong et al. 2015, and variants between them.

    encoder   h_1 … h_S = RNN(x_1 … x_S), one or two directions
    Bahdanau  c_t = attend(s_{t−1}, h);   s_t = RNN([y_{t−1}; c_t], s_{t−1})          attend, then step
    Luong     s_t = RNN([y_{t−1}; o_{t−1}], s_{t−1});   c_t = attend(s_t, h)          step, then attend
    output    o_t = tanh(W [s_t; c_t]),   p(y_t) = softmax(E o_t)

Without input feeding the RNN has y as its only input, so that all its steps, and all of attention, run at once.
B sentences, S source positions, T target positions, k hypotheses per sentence.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.core.attention import Attention
from regard.core.local import LocalPredictive
from regard.core.memory import Memory
from regard.core.normalizers import Hard
from regard.core.pattern_text import parse
from regard.core.patterns import Pattern
from regard.core.scores import Additive, Cosine, Dot, Score, at_least_float32
from regard.models.decoded import Decoded, mix_in
from regard.models.dropout import Dropout
from regard.models.embedding import Embedding, tie
from regard.models.recurrent import cells
from regard.models.recurrent.cells import Hidden
from regard.models.recurrent.decoder_path import DecoderPath, decoder_path, why_not_fused
from regard.models.recurrent.encoder import RecurrentEncoder
from regard.models.recurrent.fused_decoder import Weights as FusedWeights
from regard.models.recurrent.fused_decoder import decode
from regard.models.recurrent.options import RecurrentOptions as RecurrentOptions  # for its many importers
from regard.models.recurrent.step import RecurrentState, RecurrentSteps, weights_of


class Recurrent(nn.Module):
    """The whole translator: `forward` for training, `start` and `step` for search."""

    def __init__(self, options: RecurrentOptions, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.options = options
        states = options.encoder * (2 if options.bidirectional else 1)
        sizes = (source_vocabulary, options.embedding, options.encoder, options.encoder_layers)
        self.encoder = RecurrentEncoder(options.cell, *sizes, options.bidirectional, options.dropout)
        self.embedding = Embedding(target_vocabulary, options.embedding, padding_idx=0)
        size = options.readout or (options.embedding if options.tie != "none" else options.decoder)
        feed_size = 0 if not options.input_feeding else states if options.order == "bahdanau" else size
        self.recurrence = cells.recurrence(
            options.cell, options.embedding + feed_size, options.decoder, options.decoder_layers, options.dropout
        )
        normalizer = Hard(options.estimator) if options.normalizer == "hard" else options.normalizer
        self.attend = Attention(_score(options, states), _pattern(options, states), normalizer)
        # W of additive and general scores is a linear map of every step, so it is a layer here and not in the score.
        width = {"additive": options.attention, "general": states}.get(options.score)
        self.query = None if width is None else nn.Linear(options.decoder, width, bias=False)
        self.bridge = nn.Linear(states, options.decoder) if options.bridge else None
        self.combine = nn.Linear(options.decoder + states, size)
        self.output = nn.Linear(size, target_vocabulary)
        self.dropout = Dropout(options.dropout)
        tie(options.tie, self.encoder.embedding, self.embedding, self.output)

    # Training

    def forward(
        self, source: Tensor, lengths: Tensor, target: Tensor, sampling: float = 0.0, weights: bool = False
    ) -> Decoded:
        """Decode target [B, T], which begins with the start token, given source [B, S] of `lengths` [B].

        `sampling` is the fraction of target tokens that are replaced by the decoder's own predictions (scheduled
        sampling, Bengio et al. 2015). `weights` are returned if requested.
        """
        states, last = self.encoder(source, lengths)
        memory = self.attend.remember(states, lengths=lengths)
        hidden = self._initial_hidden(states, last)
        path = decoder_path(self.options, states, sampling)
        if path is DecoderPath.FUSED:
            return self._fused(memory, hidden[0][0], target, weights)
        if path is DecoderPath.ALL_AT_ONCE:
            return self._all_at_once(memory, hidden, target, weights)
        return self._step_by_step(memory, hidden, target, sampling, weights)

    @property
    def source_embeddings(self) -> tuple[nn.Module, ...]:
        """The modules that embed the source's tokens: one."""
        return (self.encoder.embedding,)

    @property
    def reinforced(self) -> bool:
        """Is hard attention trained by REINFORCE?"""
        return self.options.estimator == "reinforce"

    def can_capture(self, device: torch.device) -> bool:
        """Can a CUDA graph capture an update, because nothing in it synchronizes with the host? That holds where one
        function runs all steps."""
        return why_not_fused(self.options) is None and self.encoder.can_capture(device)

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the weights of attentions other than that to the source: there are none."""
        return {}

    def logits(self, output: Tensor) -> Tensor:
        """Return the logits [..., V] of outputs o [..., O]."""
        logits: Tensor = self.output(output)
        return logits

    def _initial_hidden(self, states: Tensor, last: tuple[Tensor, ...]) -> tuple[Hidden, ...]:
        """Return s_0 of each layer: the bridge from the encoder's last state, or 0."""
        layers = self.options.decoder_layers
        if self.bridge is None:
            zero = at_least_float32(states[:, 0, :0]).new_zeros(states.shape[0], self.options.decoder)
            return tuple((zero,) * len(last) for _ in range(layers))
        bridged = [torch.tanh(at_least_float32(self.bridge(x))) for x in last]  # [encoder layers, B, H]
        return tuple(tuple(x[min(layer, len(x) - 1)] for x in bridged) for layer in range(layers))

    def _all_at_once(self, memory: Memory, hidden: tuple[Hidden, ...], target: Tensor, weights: bool) -> Decoded:
        """Decode without input feeding: all steps of the RNN and all of attention at once."""
        joined = tuple(torch.stack(parts) for parts in zip(*hidden, strict=True))  # each [layers, B, H]
        embedded = self.dropout(self.embedding(target))  # [B, T, D]
        states, _ = self.recurrence(embedded, joined if len(joined) > 1 else joined[0])  # [B, T, H]
        query = states
        if self.options.order == "bahdanau":
            query = torch.cat([hidden[-1][0][:, None].to(states.dtype), states[:, :-1]], 1)
        attended = memory.read(query if self.query is None else self.query(query), weights=weights)
        output = torch.tanh(self.combine(torch.cat([states, attended.context.to(states.dtype)], -1)))
        return Decoded(self.dropout(output), attended.weights, attended.log_probability)

    def _fused(self, memory: Memory, hidden: Tensor, target: Tensor, weights: bool) -> Decoded:
        """Decode by one function for all steps, on a GPU."""
        score = self.attend.score
        assert isinstance(score, Additive) and self.query is not None
        weight, bias = weights_of(self.recurrence, "ih", 0)
        word_weight, feed_weight = weight.split([self.options.embedding, self.combine.out_features], 1)
        embedded = self.dropout(self.embedding(target)).transpose(0, 1)
        gates = at_least_float32(linear(embedded, word_weight, bias))  # [T, B, 3H]
        lengths = memory.lengths
        if lengths is None:
            lengths = torch.full((len(target),), memory.keys, device=target.device)
        recurrent = feed_weight, *weights_of(self.recurrence, "hh", 0)
        shared = FusedWeights(*recurrent, self.query.weight, score.vector, *self.combine.parameters())
        key, value = at_least_float32(memory.key), at_least_float32(memory.value)
        outputs, attention = decode(gates, hidden, key, value, lengths, shared)
        return Decoded(self.dropout(outputs.transpose(0, 1)), attention.transpose(0, 1) if weights else None)

    def _step_by_step(
        self, memory: Memory, hidden: tuple[Hidden, ...], target: Tensor, sampling: float, weights: bool
    ) -> Decoded:
        """Decode one step after another, as input feeding and scheduled sampling need it."""
        steps = RecurrentSteps(self)
        gates = steps.gates(self.dropout(self.embedding(target))).unbind(1)  # T of [B, 3H or 4H]
        output = gates[0].new_zeros(target.shape[0], self.combine.out_features)
        output_each_step = self.options.order == "luong" or sampling > 0
        outputs, attended = [], []
        for t, step_gates in enumerate(gates):
            if sampling > 0 and t > 0:
                with torch.no_grad():
                    predicted = self.logits(output).argmax(-1)
                tokens = mix_in(predicted, target[:, t], sampling)
                step_gates = steps.gates(self.dropout(self.embedding(tokens)))
            hidden, joined, result = steps(step_gates, hidden, output, memory, t, weights)
            output = steps.output(joined) if output_each_step else joined
            outputs.append(output)
            attended.append(result)
        output = torch.stack(outputs, 1)  # [B, T, O]
        if not output_each_step:
            output = torch.tanh(self.combine(output))
        all_weights = [each.weights for each in attended if each.weights is not None]
        log_probabilities = [each.log_probability for each in attended if each.log_probability is not None]
        return Decoded(
            self.dropout(output),
            torch.cat(all_weights, -2) if weights else None,
            torch.cat(log_probabilities, -1) if log_probabilities else None,
        )

    # Search

    def packed_decoder(self) -> RecurrentSteps:
        """Return the decoder's steps with packed weights, for one pass, or for many searches without gradients."""
        return RecurrentSteps(self)

    def start(self, source: Tensor, lengths: Tensor, packed: RecurrentSteps | None = None) -> RecurrentState:
        """Return the state of one hypothesis per sentence, before its first token."""
        states, last = self.encoder(source, lengths)
        memory = self.attend.remember(states[:, None], lengths=lengths[:, None])
        hidden = tuple(tuple(x[:, None] for x in layer) for layer in self._initial_hidden(states, last))
        feed = states.new_zeros(source.shape[0], 1, self.combine.out_features)
        return RecurrentState(hidden, feed, memory, self.packed_decoder() if packed is None else packed)

    def step(self, state: RecurrentState, tokens: Tensor) -> tuple[Tensor, Tensor, RecurrentState]:
        """Feed the last tokens [B, k]; return (logits [B, k, V], weights [B, k, 1, 1, S], the next state)."""
        steps = state.packed
        gates = steps.gates(self.embedding(tokens))
        hidden, joined, attended = steps(gates, state.hidden, state.feed, state.memory, state.position, weights=True)
        output = steps.output(joined)
        assert attended.weights is not None
        after = replace(state, hidden=hidden, feed=output, position=state.position + 1)
        return steps.logits(output), attended.weights[:, :, None], after


def _score(options: RecurrentOptions, states: int) -> Score | str:
    """Return the score; its queries are projected by the model's `query` layer already."""
    if options.score == "additive":
        return Additive(None, states, options.attention)
    if options.score == "general":
        return Dot()
    if options.decoder != states:
        got = f"got decoder = {options.decoder} and states of {states}"
        raise ValueError(f"score: {options.score!r} needs a decoder as wide as the encoder's states, {got}")
    return Cosine(learned=True) if options.score == "cosine" else options.score


def _pattern(options: RecurrentOptions, states: int) -> Pattern | LocalPredictive:
    pattern = parse(options.pattern)
    if not options.predictive:
        return pattern
    query = {"additive": options.attention, "general": states}.get(options.score, options.decoder)
    return LocalPredictive(query, options.predictive, within=pattern)
