"""One update: the loss of a batch, its clipped gradient, and a step of the optimizer; on a GPU also as a CUDA graph."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from regard.config.recipe import TrainingRecipe
from regard.runtime.cuda_graph import GraphCapturer
from regard.runtime.precision import Precision, autocast
from regard.training.checkpoint import Progress
from regard.training.task import Task

MAX_GRAPHS = 256  # batches of further shapes are computed without a graph


class DivergedError(Exception):
    """The loss became NaN or infinite."""


class Updater:
    """Updates a model by AdamW (Loshchilov and Hutter 2019)."""

    def __init__(self, task: Task, device: torch.device, precision: Precision) -> None:
        self._task, self.device, self.precision = task, device, precision
        self._clip = task.recipe.training.clip
        self.optimizer = optimizer(task.model, task.recipe.training, device)

    def set_learning_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def __call__(self, batch: Any, progress: Progress) -> Tensor:
        """Update the model, and return the mean loss, without gradient.

        On the CPU, raise a DivergedError before the weights change if the loss is NaN or infinite; on a GPU this check
        would synchronize.
        """
        self.optimizer.zero_grad()  # before the loss, so that old gradients take no memory beside the activations
        with autocast(self.precision, self.device):
            loss, mean_loss = self._task.loss(batch, progress)
        if not mean_loss.is_cuda and not bool(mean_loss.isfinite()):
            raise DivergedError
        loss.backward()  # type: ignore[no-untyped-call]
        self.step()
        return mean_loss

    def step(self) -> None:
        """Clip the gradient by its norm, and let the optimizer take a step."""
        if self._clip:
            gradients = [weight.grad for weight in self._task.model.parameters() if weight.grad is not None]
            norm = torch.nn.utils.get_total_norm(gradients)
            # The fused optimizer divides gradients by this, which saves a pass over all of them.
            self.optimizer.grad_scale = (norm / self._clip).clamp(min=1)  # type: ignore[attr-defined]
        self.optimizer.step()


def optimizer(model: nn.Module, recipe: TrainingRecipe, device: torch.device) -> torch.optim.AdamW:
    """Return AdamW. On a GPU its learning rate and step count are device tensors, so that a step can be captured."""
    on_device = device.type == "cuda"
    rate = torch.tensor(recipe.peak_learning_rate, device=device) if on_device else recipe.peak_learning_rate
    groups = _groups(model, recipe.weight_decay)
    return torch.optim.AdamW(groups, rate, betas=(0.9, 0.98), fused=True, capturable=on_device)


def _groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Return the parameter groups of the optimizer: weight decay applies to matrices only."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    if not decay:
        return [{"params": list(model.parameters()), "weight_decay": 0.0}]
    return [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]


class StaticBatch(Protocol):
    """A dataclass whose tensors all lie on the device."""

    @property
    def shape(self) -> tuple[int, ...]:
        """the key of its graph: batches of one shape have tensors of the same sizes"""


class CapturedUpdater:
    """An `Updater` that computes the first batch of a shape, captures the second, and replays for the others.

    To replay, Python copies a batch into static buffers: the thousand launches of an update become one. Batches come in
    few shapes (text/batches.py, text/documents.py), because each shape needs a graph.
    """

    def __init__(self, update: Updater) -> None:
        self._updater = update
        self._device = update.device
        self._seen: set[tuple[int, ...]] = set()
        self._graphs: dict[tuple[int, ...], _UpdateGraph] = {}
        self._capturer = GraphCapturer(self._device)

    @property
    def optimizer(self) -> torch.optim.AdamW:
        return self._updater.optimizer

    def set_learning_rate(self, rate: float) -> None:
        self._updater.set_learning_rate(rate)

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
            loss = self._updater(batch, progress)
        current.wait_stream(stream)
        return loss

    def _captured(self, batch: StaticBatch, progress: Progress) -> _UpdateGraph:
        static: Any = replace(batch, **{name: part.clone() for name, part in tensors(batch).items()})  # type: ignore[type-var]
        with self._capturer.capture() as graph:
            loss = self._updater(static, progress)
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
