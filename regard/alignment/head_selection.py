"""The choice of a model's attention weights from which links are read.

A recurrent model has one attention. A Transformer has one for each head of each layer, and few of them align words; the
best ones are chosen by comparison with statistical links of the same pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.look.table import mean_weights
from regard.look.trace import Matrix, Trace


@dataclass(frozen=True)
class HeadSelection:
    """Which attention weights of a trace are read."""

    layer: int | None = None  # None: the mean over all layers
    head: int | None = None  # None: the mean over all heads
    next_step: bool = False  # read the weights one step later, when the piece is the decoder's input, not its output

    def weights(self, trace: Trace) -> Matrix:
        """Return the weights of the trace, [target pieces, source pieces]."""
        weights = trace.weights
        if self.layer is not None or self.head is not None:
            attention = next(each.weights for each in trace.attentions if each.name == "cross")
            weights = mean_weights(attention, self.layer, self.head)
        return np.concatenate([weights[1:], weights[-1:]]) if self.next_step else weights

    def __str__(self) -> str:
        layer = "all layers" if self.layer is None else f"layer {self.layer}"
        head = "all heads" if self.head is None else f"head {self.head}"
        return f"{layer}, {head}" + (", one step later" if self.next_step else "")


def head_selections(traces: Sequence[Trace]) -> Iterator[HeadSelection]:
    """Yield all choices: every head, every layer's mean and the mean of all, each also one step later."""
    layers, heads = next(each.weights.shape[:2] for each in traces[0].attentions if each.name == "cross")
    for next_step in (False, True):
        yield HeadSelection(next_step=next_step)
        for layer in range(layers if layers * heads > 1 else 0):
            yield HeadSelection(layer, None, next_step)
            yield from (HeadSelection(layer, head, next_step) for head in range(heads))
