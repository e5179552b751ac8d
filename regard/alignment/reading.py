"""Which of a model's attentions are read for links.

A recurrent model has one. A Transformer has one for each head of each layer, and few of them align words: which, is
found by statistics of the pairs themselves, of which a model knows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.look.trace import Matrix, Trace


@dataclass(frozen=True)
class Reading:
    """What is read of a trace."""

    layer: int | None = None
    """None: the mean over all"""
    head: int | None = None
    later: bool = False
    """one step later: where the model looked once it had said a piece, for the next"""

    def weights(self, trace: Trace) -> Matrix:
        """[target pieces, source pieces]"""
        weights = trace.weights
        if self.layer is not None or self.head is not None:
            found = next(each.weights for each in trace.attentions if each.name == "cross")
            self._check(found.shape[:2])
            layers = found if self.layer is None else found[self.layer : self.layer + 1]
            heads = layers if self.head is None else layers[:, self.head : self.head + 1]
            weights = np.asarray(heads.mean((0, 1)), np.float32)
        return np.concatenate([weights[1:], weights[-1:]]) if self.later else weights

    def _check(self, sizes: tuple[int, ...]) -> None:
        for name, given, count in zip(("layer", "head"), (self.layer, self.head), sizes, strict=True):
            if given is not None and not 0 <= given < count:
                raise ValueError(f"{name}: expected one of 0 … {count - 1}, got {given}")

    def __str__(self) -> str:
        layer = "all layers" if self.layer is None else f"layer {self.layer}"
        head = "all heads" if self.head is None else f"head {self.head}"
        return f"{layer}, {head}" + (", one step later" if self.later else "")


def readings(traces: Sequence[Trace]) -> Iterator[Reading]:
    """Every head, every layer's mean and the mean of all, as it is and one step later."""
    layers, heads = next(each.weights.shape[:2] for each in traces[0].attentions if each.name == "cross")
    for later in (False, True):
        yield Reading(later=later)
        for layer in range(layers if layers * heads > 1 else 0):
            yield Reading(layer, None, later)
            yield from (Reading(layer, head, later) for head in range(heads))
