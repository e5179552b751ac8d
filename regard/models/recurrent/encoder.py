"""The recurrent encoder: a GRU or LSTM of one or two directions over the source's tokens.

On a GPU torch's own recurrence runs packed sequences, if the host knows the lengths; if only the GPU knows them, one
function runs all steps (fused_encoder.py). On a CPU torch would compute the gradient of every weight at every step, and
in bfloat16 cast every weight at every step, so the steps are written out here, both directions at once.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core.kernels.gpu.kernels import why_no_triton
from regard.core.scores import at_least_float32
from regard.models.dropout import Dropout
from regard.models.embedding import Embedding
from regard.models.recurrent import cells
from regard.models.recurrent.cells import Hidden
from regard.models.recurrent.fused_encoder import encode
from regard.models.recurrent.shared_linear import SharedLinear


class Recurrence(nn.Module):
    """Maps embeddings [B, S, D] of `lengths` [B] to states [B, S, E] and the last state of each layer. The last state
    is (h,) or (h, c), each [layers, B, E]. Dropout acts on the input, between layers, and on the states."""

    def __init__(self, cell: str, inputs: int, hidden: int, layers: int, bidirectional: bool, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.recurrence = cells.recurrence(cell, inputs, hidden, layers, dropout, bidirectional)

    def forward(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        embedded = self.dropout(embedded)
        if not embedded.is_cuda:
            run = self._unrolled
        elif lengths.is_cuda and self.can_capture(embedded.device) and embedded.dtype is not torch.float64:
            run = self._fused
        else:
            run = self._packed
        states, last = run(embedded, lengths)
        return self.dropout(states), last

    def can_capture(self, device: torch.device) -> bool:
        """Can a CUDA graph capture it, because it runs without synchronizing with the host? That holds for a GRU of one
        layer, if the device has the kernels for it."""
        one_layer = isinstance(self.recurrence, nn.GRU) and self.recurrence.num_layers == 1
        return one_layer and why_no_triton(device) is None

    def _fused(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        """Run it by one function for all steps (fused_encoder.py), in float32."""
        input_weight, bias, state_weight, state_bias = self._weights(0)
        with torch.autocast(embedded.device.type, enabled=False):
            gates = linear(at_least_float32(embedded).transpose(0, 1), input_weight.flatten(0, 1), bias.flatten())
            gates = gates.unflatten(2, (self._directions, -1))  # [S, B, directions, 3H]
            states, last = encode(gates, lengths, state_weight, state_bias)
        return states.flatten(2).transpose(0, 1), (last.flatten(1)[None],)

    def _packed(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        """Run it by torch's recurrence, in float32: under autocast its states would be rounded at every step, too."""
        packed = pack_padded_sequence(at_least_float32(embedded), lengths.cpu(), batch_first=True, enforce_sorted=False)
        with torch.autocast(embedded.device.type, enabled=False):
            states, last = self.recurrence(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=embedded.shape[1])
        hidden = last if isinstance(last, tuple) else (last,)
        return states, tuple(x.unflatten(0, (-1, self._directions)).transpose(1, 2).flatten(2) for x in hidden)

    def _unrolled(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        """Run it step by step, for the CPU."""
        real = torch.arange(embedded.shape[1]) < lengths.cpu()[:, None]  # [B, S]
        states, last = embedded, []
        for layer in range(self.recurrence.num_layers):
            if layer:
                states = self.dropout(states)
            states, hidden = self._layer(layer, states, real)
            last.append(hidden)
        return states, tuple(map(torch.stack, zip(*last, strict=True)))

    def _layer(self, layer: int, inputs: Tensor, real: Tensor) -> tuple[Tensor, Hidden]:
        """Return the states [B, S, E] and the last state of one layer with inputs [B, S, D]; `real` [B, S] is False at
        padding. Both directions advance together, the second from the end."""
        input_weight, input_bias, state_weight, state_bias = self._weights(layer)
        gates = inputs.transpose(0, 1).flatten(0, 1) @ input_weight.mT + input_bias[:, None]  # [directions, S·B, 3H]
        gates = gates.unflatten(1, (inputs.shape[1], inputs.shape[0]))  # [directions, S, B, 3H]
        if self._directions == 2:
            gates = torch.stack([gates[0], gates[1].flip(0)])
        step = SharedLinear(state_weight, state_bias)
        shape = (self._directions, inputs.shape[0], self.recurrence.hidden_size)
        zero = gates.new_zeros(shape, dtype=torch.promote_types(gates.dtype, torch.float32))
        hidden: Hidden = (zero, zero) if isinstance(self.recurrence, nn.LSTM) else (zero,)
        states, unpadded, real = [], bool(real.all()), real.to(inputs.device)
        for t, step_gates in enumerate(gates.unbind(1)):  # [directions, B, 3H]
            positions = (t, inputs.shape[1] - 1 - t)[: self._directions]
            new = cells.step(step_gates, step(hidden[0]), hidden)
            if not unpadded:  # padding leaves the state unchanged
                is_real = torch.stack([real[:, position] for position in positions])[..., None]  # [directions, B, 1]
                new = tuple(torch.where(is_real, x, old) for x, old in zip(new, hidden, strict=True))
            hidden = new
            states.append(hidden[0])
        by_direction = [torch.stack([x[0] for x in states], 1)]
        if self._directions == 2:
            by_direction.append(torch.stack([x[1] for x in reversed(states)], 1))
        return torch.cat(by_direction, -1), tuple(x.transpose(0, 1).flatten(1) for x in hidden)

    def _weights(self, layer: int) -> list[Tensor]:
        """Return W_i, b_i, W_h and b_h of a layer, each [directions, …]."""
        suffixes = ("", "_reverse")[: self._directions]
        return [
            torch.stack([getattr(self.recurrence, f"{name}_l{layer}{suffix}") for suffix in suffixes])
            for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        ]

    @property
    def _directions(self) -> int:
        return 2 if self.recurrence.bidirectional else 1


class RecurrentEncoder(Recurrence):
    """A `Recurrence` over the embeddings of source tokens [B, S] of `lengths` [B]."""

    def __init__(
        self, cell: str, vocabulary: int, embedding: int, hidden: int, layers: int, bidirectional: bool, dropout: float
    ) -> None:
        table = Embedding(vocabulary, embedding, padding_idx=0)
        super().__init__(cell, embedding, hidden, layers, bidirectional, dropout)
        self.embedding = table

    def forward(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        return super().forward(self.embedding(source), lengths)
