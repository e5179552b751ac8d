"""The task of tuning: another task whose model is trained already, pulled towards its old weights, validated twice.

    loss = loss of the task + λ/2 · ‖θ − θ_old‖²        (λ is `training.pull`; L2-SP, Li et al. 2018)

The score by which the best model is chosen is that on the new dev part. A model that has lost more than
`training.max_forgetting` points on the old dev part is worse by what it lost beyond them, FORGETTING_COST times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.config.recipe import Recipe
from regard.runtime.distributed import ALONE, World
from regard.runtime.precision import Precision
from regard.training.average import averaged
from regard.training.checkpoint import Progress
from regard.training.plan import MAX_VALIDATION_SOURCES
from regard.training.task import ONE, MakeBatch, Shares, Task, Validation

FORGETTING_COST = 10.0  # points of the new dev part that one point of forgetting beyond the tolerated ones costs


def forgetting_cost(forgotten: float, recipe: Recipe) -> float:
    """Return how many points of the new dev part it costs that so many points of the old one are lost."""
    return FORGETTING_COST * max(0.0, forgotten - recipe.training.max_forgetting)


@dataclass(frozen=True)
class DevParts:
    """The examples by which a model is validated while it is tuned; its size is that of the new ones."""

    new: Sequence[Any]
    old: Sequence[Any] | None  # None: there are none

    def __len__(self) -> int:
        return len(self.new)


@dataclass(frozen=True)
class TunedTask(Task):
    inner: Task
    old: Task | None  # the same model with the old dev part; None: there is none
    old_model: nn.Module  # with the old weights
    tuned_from: dict[str, Any]  # the entry of the card
    recipe: Recipe
    model: nn.Module
    dev: DevParts
    skipped: Sequence[str] = ()
    scores_before: dict[int, float] = field(default_factory=dict)
    """the old weights' scores on the old dev part, by the number of sources: computed at the first validation"""

    @property
    def facts(self) -> dict[str, Any]:
        return self.inner.facts | {"tuned_from": self.tuned_from}

    def write(self, folder: Path) -> None:
        self.inner.write(folder)

    @property
    def size(self) -> int:
        return self.inner.size

    @property
    def smallest_batch_fraction(self) -> float:
        return self.inner.smallest_batch_fraction

    def batches_per_epoch(self) -> int:
        return self.inner.batches_per_epoch()

    def epoch(self, number: int, batch_fraction: float = 1.0, canonical: bool = False) -> Sequence[MakeBatch]:
        return self.inner.epoch(number, batch_fraction, canonical)

    # Loss

    def can_capture(self, device: torch.device) -> bool:
        return self.inner.can_capture(device)

    def loss_counts(self, batch: Any) -> Tensor:
        return self.inner.loss_counts(batch)

    def micro_batches(self, batch: Any) -> Sequence[Any]:
        return self.inner.micro_batches(batch)

    def loss(self, batch: Any, progress: Progress, shares: Shares = ONE) -> tuple[Tensor, Tensor]:
        loss, mean_loss = self.inner.loss(batch, progress, shares)
        pull = self.recipe.training.pull
        if pull:
            loss = loss + shares[0] * pull / 2 * self._squared_distance()
        return loss, mean_loss

    def _squared_distance(self) -> Tensor:
        """Return ‖θ − θ_old‖² over the weights that gradients train."""
        olds = self._old_weights()
        trained = [(weight, olds[name]) for name, weight in self.model.named_parameters() if weight.requires_grad]
        return torch.stack([(weight - old).square().sum() for weight, old in trained]).sum()

    def _old_weights(self) -> dict[str, Tensor]:
        """Return the old weights by name, on the device of the model."""
        self.old_model.to(next(self.model.parameters()).device)  # which does nothing from the second time on
        return {name: weight.detach() for name, weight in self.old_model.named_parameters()}

    # Dev

    def validate(
        self, number: int, device: torch.device, max_sources: int = MAX_VALIDATION_SOURCES, world: World = ALONE
    ) -> Validation:
        new = self.inner.validate(number, device, max_sources, world)
        if self.old is None:
            return new
        old = self.old.validate(number, device, max_sources, world)
        if max_sources not in self.scores_before:
            with averaged(self.model, self._old_weights()):
                self.scores_before[max_sources] = self.old.validate(number, device, max_sources, world).score
        forgotten = self.scores_before[max_sources] - old.score
        return replace(
            new,
            score=new.score - forgetting_cost(forgotten, self.recipe),
            summary=f"{new.summary}; old dev: {old.summary} ({-forgotten:+.1f})",
            facts=new.facts | {"old_dev": {name: fact for name, fact in old.facts.items() if name != "probes"}},
        )

    def rehearse(
        self, device: torch.device, precision: Precision, trained: bool, limit: float, world: World = ALONE
    ) -> float | None:
        """Time the final scoring: of both dev parts, before and after."""
        parts = [self.inner] if self.old is None else [self.inner, self.old]
        seconds = [part.rehearse(device, precision, trained, limit, world) for part in parts]
        return None if None in seconds else 2 * sum(each for each in seconds if each is not None)
