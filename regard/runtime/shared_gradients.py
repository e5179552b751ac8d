"""Gradients of inputs that many steps of a forward pass share, computed once per backward pass.

Autograd alone computes the gradient of a shared input, such as a weight, in every step and adds them up. Here a step's
backward only records what the sum needs. All steps depend on an *anchor*, a scalar computed from the shared inputs, so
the anchor's backward runs after theirs and computes the gradients from all records at once.

    records = StepRecords()
    anchor = anchor_of(records, gradients, *shared)       gradients(list of records) → one gradient per shared input
    y = Step.apply(x, anchor, records, …)                 in its backward: return grad_x, records.add(step, …), None, …

Each step returns 1 as its gradient of the anchor, so the anchor's gradient is the number of steps of this backward
pass, and their records are the last ones. Others are left by passes that did not need the shared inputs' gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

Record = TypeVar("Record")
Gradients = Callable[[list[Any]], tuple[Tensor | None, ...]]


class StepRecords(Generic[Record]):
    """The records of the steps of one forward pass, in the order in which their backwards last ran."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}
        self._one = torch.ones((), device="cpu")

    def add(self, step: int, record: Record) -> Tensor:
        """Record what the backward of a step, known by its number, computed; return its gradient of the anchor."""
        self._records.pop(step, None)
        self._records[step] = record
        return self._one

    def take(self, count: int) -> list[Record]:
        """Return the last `count` records, and forget all."""
        records = list(self._records.values())
        self._records.clear()
        return records[len(records) - count :]


def anchor_of(records: StepRecords[Record], gradients: Gradients, *shared: Tensor | None) -> Tensor:
    """Return the anchor, which the steps take as an input."""
    return cast(Tensor, _Anchor.apply(records, gradients, *shared))  # type: ignore[no-untyped-call]


class _Anchor(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, records: StepRecords[Any], gradients: Gradients, *shared: Tensor | None) -> Tensor:
        ctx.records, ctx.gradients, ctx.count = records, gradients, len(shared)
        return torch.zeros((), device="cpu")

    @staticmethod
    def backward(ctx: Any, steps: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        records = ctx.records.take(int(steps))
        return None, None, *(ctx.gradients(records) if records else (None,) * ctx.count)
