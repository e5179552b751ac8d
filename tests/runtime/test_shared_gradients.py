"""Gradients of shared inputs, once per backward pass, against autograd alone."""

from typing import Any

import torch
from torch import Tensor

from regard.runtime.shared_gradients import StepRecords, anchor_of

calls: list[int] = []


class Scaled(torch.autograd.Function):
    """w ⊙ x of one step."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, records: StepRecords[Tensor], step: int, w: Tensor) -> Tensor:
        ctx.records, ctx.step = records, step
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, w = ctx.saved_tensors
        return gradient * w, ctx.records.add(ctx.step, gradient * x), None, None, None


def summed(records: list[Tensor]) -> tuple[Tensor]:
    calls.append(len(records))
    return (torch.stack(records).sum(0),)


def steps(w: Tensor, xs: list[Tensor]) -> list[Tensor]:
    records: StepRecords[Tensor] = StepRecords()
    anchor = anchor_of(records, summed, w)
    return [Scaled.apply(x, anchor, records, step, w) for step, x in enumerate(xs)]  # type: ignore[no-untyped-call]


def test_every_pass_gets_the_sum_of_its_own_steps() -> None:
    calls.clear()
    w, xs = torch.randn(3, requires_grad=True), [torch.randn(3, requires_grad=True) for _ in range(4)]
    ys = steps(w, xs)
    all_steps, some = sum(y.square().sum() for y in ys), ys[1].sum() + ys[3].sum()
    torch.autograd.grad(all_steps, xs, retain_graph=True)  # never reaches the anchor
    torch.autograd.grad(some, xs[1], retain_graph=True)
    for loss, plain in ((some, xs[1] + xs[3]), (all_steps, sum(2 * w * x * x for x in xs))):
        for _ in range(2):
            (result,) = torch.autograd.grad(loss, w, retain_graph=True)
            torch.testing.assert_close(result, plain)
    assert calls == [2, 2, 4, 4]


def test_a_pass_that_failed_leaves_nothing_behind() -> None:
    w, xs = torch.randn(3, requires_grad=True), [torch.randn(3, requires_grad=True) for _ in range(2)]
    ys = steps(w, xs)

    def fail(_: Tensor) -> None:
        raise KeyError

    handle = xs[0].register_hook(fail)
    try:
        torch.autograd.grad(ys[0].sum() + ys[1].sum(), [xs[0], w], retain_graph=True)
    except KeyError:
        handle.remove()
    (result,) = torch.autograd.grad(ys[1].sum(), w)
    torch.testing.assert_close(result, xs[1].detach())


def test_shared_inputs_that_no_step_used_get_none() -> None:
    w, other = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    anchor = anchor_of(StepRecords(), summed, w)
    assert torch.autograd.grad(anchor + other.sum(), [w, other], allow_unused=True)[0] is None
