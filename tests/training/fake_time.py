"""A task that takes time only by a clock of its own, to run whole trainings by the clock in no time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.config.recipe_text import read_recipe
from regard.runtime.distributed import ALONE, World
from regard.training.loop import Loop, Machine
from regard.training.progress import Reporter, Silent
from regard.training.task import ONE, MakeBatch, Shares, Validation

CPU = torch.device("cpu")


@dataclass
class Time:
    """Passes when somebody says so; `slower` by how much, at a moment."""

    now: float = 1000.0
    slower: Callable[[float], float] = lambda seconds: 1.0
    began: float = 1000.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds * self.slower(self.now - self.began)


@dataclass(frozen=True)
class Batch:
    tokens: int = 1


@dataclass
class Costs:
    """Seconds. An update of a batch of fraction b takes `fixed + per_batch · b`; the first validations take longer."""

    fixed: float
    per_batch: float
    a_source: float
    final: float
    early: float = 3.0


@dataclass
class Task:
    time: Time
    costs: Costs
    kind: str = "rnn"
    smallest_batch_fraction: float = 0.1
    size: int = 10_000
    dev: Sequence[int] = range(1000)
    model: nn.Module = field(default_factory=lambda: nn.Linear(2, 1))
    done: int = 0
    spike: float = 0.0
    """the first rehearsal after so many seconds takes six times as long"""
    sizes: list[float] = field(default_factory=list)
    canonical: list[bool] = field(default_factory=list)
    tried: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        recipe = read_recipe(self.kind)
        self.recipe = replace(recipe, training=replace(recipe.training, epochs=1, learning_rate=0.003))
        self.facts: dict[str, Any] = {}

    def write(self, folder: Path) -> None:
        pass

    def batches_per_epoch(self) -> int:
        return 100

    def epoch(self, number: int, batch_fraction: float = 1.0, canonical: bool = False) -> Sequence[MakeBatch]:
        def make(device: torch.device) -> Batch:
            self.time.passes(self.costs.fixed + self.costs.per_batch * batch_fraction)
            self.done += 1
            self.sizes.append(batch_fraction)
            self.canonical.append(canonical)
            return Batch()

        return [make] * round(100 / batch_fraction)

    def place_on(self, device: torch.device) -> nn.Module:
        return self.model.to(device)

    def can_capture(self, device: torch.device) -> bool:
        return False

    def micro_batches(self, batch: Batch) -> Sequence[Batch]:
        return [batch]

    def loss_counts(self, batch: Batch) -> Tensor:
        return torch.ones(1)

    def loss(self, batch: Batch, progress: Any, shares: Shares = ONE) -> tuple[Tensor, Tensor]:
        loss = self.model(torch.ones(1, 2)).square().mean()
        return loss * shares[0], loss.detach()

    @property
    def _longer(self) -> float:
        """Decoding to the limit of length, at first."""
        return self.costs.early if self.done < 50 else 1.0

    def validate(self, number: int, device: torch.device, max_sources: int = 1000, world: World = ALONE) -> Validation:
        self.time.passes(min(max_sources, len(self.dev)) * self.costs.a_source * self._longer)
        self.tried.append(max_sources)
        return Validation(float(self.done), "", "", {}, 1.0 / self.done)

    def rehearse(
        self, device: torch.device, precision: Any, trained: bool, limit: float, world: World = ALONE
    ) -> float | None:
        took = self.costs.final / 16 * (self._longer if trained else 1.0)
        if self.spike and self.time.now - self.time.began > self.spike:
            self.spike, took = 0.0, 6 * took
        before = self.time.now
        self.time.passes(took)
        return 16 * (self.time.now - before)


def run(task: Task, seconds: float, folder: Path, monkeypatch: pytest.MonkeyPatch, setup: float = 5.0) -> Loop:
    """Train as the command does: set-up before, the final scoring behind. Afterwards the task's time has passed."""
    monkeypatch.setattr(time, "monotonic", task.time)
    task.time.passes(setup)
    (folder / "training").mkdir(exist_ok=True)
    reporter = Reporter(folder / "log.jsonl", Silent())
    loop = Loop(task, folder, Machine(CPU, "fp32"), reporter, seconds, task.time.began)  # type: ignore[arg-type]
    loop.run()
    task.time.passes(task.costs.final)
    return loop
