"""One update: the loss of a batch, its clipped gradient, and a step of the optimizer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from regard.config.recipe import TrainingRecipe
from regard.runtime.precision import Precision, autocast
from regard.training.checkpoint import Progress
from regard.training.task import Task


class DivergedError(Exception):
    """The loss became NaN or infinite."""


class Update:
    """Updates of a model by AdamW (Loshchilov and Hutter 2019)."""

    def __init__(self, task: Task, device: torch.device, precision: Precision) -> None:
        self._task, self.device, self._precision = task, device, precision
        self._clip = task.recipe.training.clip
        self.optimizer = optimizer(task.model, task.recipe.training, device)

    def rate(self, rate: float) -> None:
        """Set the learning rate."""
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
        with autocast(self._precision, self.device):
            loss, mean_loss = self._task.loss(batch, progress)
        if not mean_loss.is_cuda and not bool(mean_loss.isfinite()):
            raise DivergedError
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self._clip:
            gradients = [weight.grad for weight in self._task.model.parameters() if weight.grad is not None]
            norm = torch.nn.utils.get_total_norm(gradients)
            # The fused optimizer divides gradients by this, which saves a pass over all of them.
            self.optimizer.grad_scale = (norm / self._clip).clamp(min=1)  # type: ignore[attr-defined]
        self.optimizer.step()
        return mean_loss


def optimizer(model: nn.Module, recipe: TrainingRecipe, device: torch.device) -> torch.optim.AdamW:
    """Return AdamW. On a GPU its learning rate and step count are device tensors, so that a step can be captured."""
    on_device = device.type == "cuda"
    rate = torch.tensor(recipe.peak, device=device) if on_device else recipe.peak
    groups = _groups(model, recipe.weight_decay)
    return torch.optim.AdamW(groups, rate, betas=(0.9, 0.98), fused=True, capturable=on_device)


def _groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Return the parameter groups of the optimizer: weight decay applies to matrices only."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    if not decay:
        return [{"params": list(model.parameters()), "weight_decay": 0.0}]
    return [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
