"""Updates that a GPU plays back (CUDA graphs): Python gives it a batch, and the thousand launches of an update are one.

A recording is of one shape of batches, so these come in few (text/batches.py, text/documents.py).
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.runtime.cuda_graph import Recorder
from regard.training.checkpoint import Progress
from regard.training.updating import Update

MOST = 256
"""recordings that are kept; of other shapes every update is made anew"""


class Batch(Protocol):
    """A dataclass whose tensors all lie on the device."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Tells which recording is its own: batches of one shape have tensors of the same sizes."""


class RecordedUpdate:
    """As `Update`, whose first batch of a shape is computed, whose second is recorded, and the others played back."""

    def __init__(self, update: Update) -> None:
        self._update = update
        self._device = update.device
        self._met: set[tuple[int, ...]] = set()
        self._recordings: dict[tuple[int, ...], _Recording] = {}
        self._recorder = Recorder(self._device)

    @property
    def optimizer(self) -> torch.optim.AdamW:
        return self._update.optimizer

    def rate(self, rate: float) -> None:
        self._update.rate(rate)

    def __call__(self, batch: Batch, progress: Progress) -> Tensor:
        with torch.cuda.device(self._device):
            return self._made(batch, progress)

    def _made(self, batch: Batch, progress: Progress) -> Tensor:
        recording = self._recordings.get(batch.shape)
        if recording is None and (batch.shape not in self._met or len(self._recordings) == MOST):
            self._met.add(batch.shape)
            return self._computed(batch, progress)
        if recording is None:
            recording = self._recordings[batch.shape] = self._record(batch, progress)
        return recording.play(batch)

    def _computed(self, batch: Batch, progress: Progress) -> Tensor:
        """On the stream on which it would be recorded, so that nothing it leaves behind belongs to another."""
        current, stream = torch.cuda.current_stream(), self._recorder.stream
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            told = self._update(batch, progress)
        current.wait_stream(stream)
        return told

    def _record(self, batch: Batch, progress: Progress) -> _Recording:
        kept: Any = replace(batch, **{name: part.clone() for name, part in tensors(batch).items()})  # type: ignore[type-var]
        with self._recorder.recording() as graph:
            told = self._update(kept, progress)
        return _Recording(graph, kept, told)


def tensors(batch: Any) -> dict[str, Tensor]:
    """Return what differs from batch to batch of a shape, by name."""
    parts = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {name: part for name, part in parts.items() if isinstance(part, Tensor)}


class _Recording:
    def __init__(self, graph: torch.cuda.CUDAGraph, batch: Batch, told: Tensor) -> None:
        self._graph, self._batch, self._told = graph, batch, told

    def play(self, batch: Batch) -> Tensor:
        """The loss is cloned: the next recording may write where it lies."""
        torch._foreach_copy_(list(tensors(self._batch).values()), list(tensors(batch).values()))
        self._graph.replay()
        return self._told.clone()
