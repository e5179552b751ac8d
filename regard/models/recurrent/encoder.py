"""The encoder: the source's tokens to states, by a GRU or LSTM of one or two directions.

On a GPU torch's own recurrence runs it, packed, by lengths that the host knows, or, where only the GPU knows them, one
function for all steps (encoder_loop.py). On a CPU torch computes the gradient of every weight at every step, and in
bfloat16 casts every weight at every step; there the steps are taken here, both directions at once.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core.kernels.gpu.kernels import without_kernels
from regard.core.scores import wide
from regard.models.dropout import Dropout
from regard.models.embedding import Embedding
from regard.models.recurrent import cells
from regard.models.recurrent.cells import Hidden
from regard.models.recurrent.encoder_loop import encode
from regard.models.recurrent.every_step import EveryStep


class Recurrence(nn.Module):
    """embedded [B, S, D], lengths [B] → states [B, S, E] and the last state of each layer: (h, c) [layers, B, E] each.

    Dropout acts on what comes in, between layers, and on the states.
    """

    def __init__(self, cell: str, inputs: int, hidden: int, layers: int, bidirectional: bool, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.recurrence = cells.recurrence(cell, inputs, hidden, layers, dropout, bidirectional)

    def forward(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        embedded = self.dropout(embedded)
        if not embedded.is_cuda:
            run = self._unrolled
        elif lengths.is_cuda and self.never_waits(embedded.device) and embedded.dtype is not torch.float64:
            run = self._as_one
        else:
            run = self._packed
        states, last = run(embedded, lengths)
        return self.dropout(states), last

    def never_waits(self, device: torch.device) -> bool:
        """Does the device run it without telling the host anything, so that it can be recorded? A GRU of one layer, if
        it has kernels for it."""
        gru = isinstance(self.recurrence, nn.GRU) and self.recurrence.num_layers == 1
        return gru and without_kernels(device) is None

    def _as_one(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        """By one function for all steps (encoder_loop.py), in float32."""
        ways = ("", "_reverse")[: self._directions]
        by_input, bias, by_state, state_bias = (
            [getattr(self.recurrence, f"{name}_l0{way}") for way in ways]
            for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        )
        with torch.autocast(embedded.device.type, enabled=False):
            gates = linear(wide(embedded).transpose(0, 1), torch.cat(by_input), torch.cat(bias))
            gates = gates.unflatten(2, (len(ways), -1))  # [S, B, ways, 3H]
            states, last = encode(gates, lengths, torch.stack(by_state), torch.stack(state_bias))
        return states.flatten(2).transpose(0, 1), (last.flatten(1)[None],)

    def _packed(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        """By torch's recurrence, in float32: under autocast its states, too, would be rounded at every step."""
        packed = pack_padded_sequence(wide(embedded), lengths.cpu(), batch_first=True, enforce_sorted=False)
        with torch.autocast(embedded.device.type, enabled=False):
            states, last = self.recurrence(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=embedded.shape[1])
        hidden = last if isinstance(last, tuple) else (last,)
        return states, tuple(x.unflatten(0, (-1, self._directions)).transpose(1, 2).flatten(2) for x in hidden)

    def _unrolled(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        """The same, step by step."""
        real = torch.arange(embedded.shape[1]) < lengths.cpu()[:, None]  # [B, S]
        last = []
        states = embedded
        for layer in range(self.recurrence.num_layers):
            if layer:
                states = self.dropout(states)
            states, hidden = self._layer(layer, states, real)
            last.append(hidden)
        return states, tuple(torch.stack(parts) for parts in zip(*last, strict=True))

    def _layer(self, layer: int, inputs: Tensor, real: Tensor) -> tuple[Tensor, Hidden]:
        """inputs [B, S, D] → states [B, S, E], last state. Both directions walk together: the second from the end."""
        by_input, bias_input, by_state, bias_state = (
            torch.stack(
                [getattr(self.recurrence, f"{name}_l{layer}{way}") for way in ("", "_reverse")[: self._directions]]
            )
            for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        )
        gates = inputs.transpose(0, 1).flatten(0, 1) @ by_input.mT + bias_input[:, None]  # [ways, S·B, 3H]
        gates = gates.unflatten(1, (inputs.shape[1], inputs.shape[0]))  # [ways, S, B, 3H]
        if self._directions == 2:
            gates = torch.stack([gates[0], gates[1].flip(0)])
        step = EveryStep(by_state, bias_state)
        zero = wide(gates[0, 0, :0, :0]).new_zeros(self._directions, inputs.shape[0], self.recurrence.hidden_size)
        kind = nn.LSTM
        hidden: Hidden = (zero, zero) if isinstance(self.recurrence, kind) else (zero,)
        states = []
        full = bool(real.all())
        real = real.to(inputs.device)
        for t, now in enumerate(gates.unbind(1)):  # [ways, B, 3H]
            places = (t, inputs.shape[1] - 1 - t)[: self._directions]
            new = cells.step(now, step(hidden[0]), hidden)
            if not full:  # padding leaves the state as it was
                going = torch.stack([real[:, place] for place in places])[..., None]  # [ways, B, 1]
                new = tuple(torch.where(going, x, old) for x, old in zip(new, hidden, strict=True))
            hidden = new
            states.append(hidden[0])
        forward = torch.stack([x[0] for x in states], 1)
        both = [forward, torch.stack([x[1] for x in reversed(states)], 1)] if self._directions == 2 else [forward]
        return torch.cat(both, -1), tuple(x.transpose(0, 1).flatten(1) for x in hidden)

    @property
    def _directions(self) -> int:
        return 2 if self.recurrence.bidirectional else 1


class Encoder(Recurrence):
    """source [B, S], lengths [B] → what the recurrence makes of its embeddings."""

    def __init__(
        self,
        cell: str,
        vocabulary: int,
        embedding: int,
        hidden: int,
        layers: int,
        bidirectional: bool,
        dropout: float,
    ) -> None:
        table = Embedding(vocabulary, embedding, padding_idx=0)
        super().__init__(cell, embedding, hidden, layers, bidirectional, dropout)
        self.embedding = table

    def forward(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        return super().forward(self.embedding(source), lengths)
