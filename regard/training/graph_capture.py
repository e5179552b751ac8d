"""Training updates as CUDA graphs: Python copies a batch into static buffers, and the thousand launches of an update
become one replay.

A graph serves one shape of batches, so batches come in few shapes (text/batches.py, text/documents.py).
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.runtime.cuda_graph import GraphCapturer
from regard.training.checkpoint import Progress
from regard.training.updating import Update

MAX_GRAPHS = 256
"""batches of further shapes are computed without a graph"""


class StaticBatch(Protocol):
    """A dataclass whose tensors all lie on the device."""

    @property
    def shape(self) -> tuple[int, ...]:
        """the key of its graph: batches of one shape have tensors of the same sizes"""


class CapturedUpdate:
    """An `Update` that computes the first batch of a shape, captures the second, and replays for the others."""

    def __init__(self, update: Update) -> None:
        self._update = update
        self._device = update.device
        self._seen: set[tuple[int, ...]] = set()
        self._graphs: dict[tuple[int, ...], _UpdateGraph] = {}
        self._capturer = GraphCapturer(self._device)

    @property
    def optimizer(self) -> torch.optim.AdamW:
        return self._update.optimizer

    def rate(self, rate: float) -> None:
        self._update.rate(rate)

    def __call__(self, batch: StaticBatch, progress: Progress) -> Tensor:
        with torch.cuda.device(self._device):
            graph = self._graphs.get(batch.shape)
            if graph is None and (batch.shape not in self._seen or len(self._graphs) == MAX_GRAPHS):
                self._seen.add(batch.shape)
                return self._computed(batch, progress)
            if graph is None:
                graph = self._graphs[batch.shape] = self._captured(batch, progress)
            return graph.replay(batch)

    def _computed(self, batch: StaticBatch, progress: Progress) -> Tensor:
        """Compute the update on the stream of the captures, so that its memory belongs to no other."""
        current, stream = torch.cuda.current_stream(), self._capturer.stream
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            loss = self._update(batch, progress)
        current.wait_stream(stream)
        return loss

    def _captured(self, batch: StaticBatch, progress: Progress) -> _UpdateGraph:
        static: Any = replace(batch, **{name: part.clone() for name, part in tensors(batch).items()})  # type: ignore[type-var]
        with self._capturer.capture() as graph:
            loss = self._update(static, progress)
        return _UpdateGraph(graph, static, loss)


def tensors(batch: Any) -> dict[str, Tensor]:
    """Return the tensors of a batch by name."""
    parts = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {name: part for name, part in parts.items() if isinstance(part, Tensor)}


class _UpdateGraph:
    def __init__(self, graph: torch.cuda.CUDAGraph, batch: StaticBatch, loss: Tensor) -> None:
        self._graph, self._batch, self._loss = graph, batch, loss

    def replay(self, batch: StaticBatch) -> Tensor:
        """Replay the update for a batch; its loss is cloned, because the next graph may write where it lies."""
        torch._foreach_copy_(list(tensors(self._batch).values()), list(tensors(batch).values()))
        self._graph.replay()
        return self._loss.clone()
