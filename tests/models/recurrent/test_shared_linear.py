"""A linear map of every step against torch's own, forward and backward."""

import gc
import weakref

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear

from regard.models.recurrent.shared_linear import SharedLinear


def states(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
@pytest.mark.parametrize("bias", [False, True])
def test_several_steps_are_torchs_linear(leading: tuple[int, ...], bias: bool) -> None:
    """A recurrence: each step's input comes from the step before."""
    weight, first = states(*leading, 5, 5), states(*leading, 4, 5)
    extra = states(*leading, 5) if bias else None
    leaves = [weight, first] if extra is None else [weight, first, extra]
    step = SharedLinear(weight, extra)
    mine, theirs = first, first
    total_mine, total_theirs = first.sum() * 0, first.sum() * 0
    for t in range(4):
        mine, theirs = torch.tanh(step(mine)), theirs @ weight.mT
        theirs = torch.tanh(theirs if extra is None else theirs + extra[..., None, :])
        torch.testing.assert_close(mine, theirs)
        total_mine, total_theirs = (
            total_mine + (t + 1) * mine.square().sum(),
            total_theirs + (t + 1) * theirs.square().sum(),
        )
    torch.testing.assert_close(torch.autograd.grad(total_mine, leaves), torch.autograd.grad(total_theirs, leaves))


def test_a_single_step_is_torchs_linear() -> None:
    weight, bias, x = states(3, 5), states(3), states(4, 5)
    mine, theirs = SharedLinear(weight, bias)(x), linear(x, weight, bias)
    torch.testing.assert_close(mine, theirs)
    seed = torch.randn_like(mine)
    torch.testing.assert_close(
        torch.autograd.grad(mine, [weight, bias, x], seed), torch.autograd.grad(theirs, [weight, bias, x], seed)
    )


def test_steps_whose_output_is_not_used_add_nothing() -> None:
    weight, x = states(3, 5), states(4, 5)
    step = SharedLinear(weight)
    step(x)
    used = step(2 * x)
    (result,) = torch.autograd.grad(used.sum(), weight)
    torch.testing.assert_close(result, torch.autograd.grad(linear(2 * x, weight).sum(), weight)[0])


def test_inputs_without_gradient_and_weights_without() -> None:
    weight, x = states(3, 5), states(4, 5)
    step = SharedLinear(weight)
    torch.testing.assert_close(
        torch.autograd.grad((step(x.detach()) * step(x.detach())).sum(), weight)[0],
        torch.autograd.grad(linear(x.detach(), weight).square().sum(), weight)[0],
    )
    frozen = SharedLinear(weight.detach())
    torch.testing.assert_close(
        torch.autograd.grad(frozen(x).square().sum(), x)[0],
        torch.autograd.grad(linear(x, weight.detach()).square().sum(), x)[0],
    )


def test_two_losses_one_after_the_other() -> None:
    weight, x = states(3, 5), states(4, 5)
    step = SharedLinear(weight)
    one, two = step(x).square().sum(), step(x).sum()
    (one + 0 * two).backward(retain_graph=True)
    (two + 0 * one).backward()
    expected = torch.autograd.grad(linear(x, weight).square().sum() + linear(x, weight).sum(), weight)[0]
    torch.testing.assert_close(weight.grad, expected)


def test_asking_for_the_inputs_gradient_first_leaves_nothing_behind() -> None:
    weight, x = states(3, 5), states(4, 5)
    loss = SharedLinear(weight)(x).square().sum()
    torch.autograd.grad(loss, x, retain_graph=True)
    (result,) = torch.autograd.grad(loss, weight)
    torch.testing.assert_close(result, torch.autograd.grad(linear(x, weight).square().sum(), weight)[0])


def test_a_pass_for_the_inputs_of_other_steps_leaves_nothing_behind() -> None:
    weight, x = states(3, 5), states(4, 5)
    step = SharedLinear(weight)
    first, second = step(x).square().sum(), step(2 * x).sum()
    torch.autograd.grad(first, x, retain_graph=True)
    (result,) = torch.autograd.grad(second, weight)
    torch.testing.assert_close(result, torch.autograd.grad(linear(2 * x, weight).sum(), weight)[0])


def test_autocast_computes_in_bfloat16_and_keeps_float32_gradients() -> None:
    weight, x = torch.randn(16, 16, requires_grad=True), torch.randn(8, 16, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        step = SharedLinear(weight)
        y = step(x)
        z = step(torch.tanh(y))
    assert y.dtype == torch.bfloat16
    mine = torch.autograd.grad(z.float().sum(), [weight, x])
    theirs = torch.autograd.grad(linear(torch.tanh(linear(x, weight)), weight).sum(), [weight, x])
    assert all(gradient.dtype == torch.float32 for gradient in mine)
    for one, other in zip(mine, theirs, strict=True):
        assert (one - other).norm() < 0.02 * other.norm()


def test_backward_twice_gives_the_same_gradients() -> None:
    weight, x = states(5, 5), states(4, 5)
    step = SharedLinear(weight)
    loss = step(torch.tanh(step(x))).square().sum()
    once, twice = (torch.autograd.grad(loss, [weight, x], retain_graph=True) for _ in range(2))
    torch.testing.assert_close(once, twice, rtol=0, atol=0)


def test_parts_of_one_pass_need_not_keep_the_graph_for_each_other() -> None:
    weight, x = states(3, 5), states(4, 5)
    step = SharedLinear(weight)
    step(torch.tanh(x)).square().sum().backward()
    step(torch.tanh(2 * x)).sum().backward()
    loss = linear(torch.tanh(x), weight).square().sum() + linear(torch.tanh(2 * x), weight).sum()
    torch.testing.assert_close(weight.grad, torch.autograd.grad(loss, weight)[0])


def test_gradients_of_gradients() -> None:
    weight, bias, x = states(4, 4), states(4), states(3, 4)

    def penalty(step: SharedLinear | None) -> Tensor:
        y = x
        for _ in range(3):
            y = torch.tanh(linear(y, weight, bias) if step is None else step(y))
        return sum(g.square().sum() for g in torch.autograd.grad(y.sum(), [weight, bias, x], create_graph=True))  # type: ignore[return-value]

    mine, theirs = (
        torch.autograd.grad(penalty(step), [weight, bias, x]) for step in (SharedLinear(weight, bias), None)
    )
    torch.testing.assert_close(mine, theirs)


def test_nothing_is_left_to_the_garbage_collector() -> None:
    """The records of a pass end with its graph, not with the next collection of reference cycles."""
    weight, x = states(3, 5), states(4, 5)
    inputs = torch.tanh(x)
    alive = weakref.ref(inputs)
    gc.disable()
    try:
        step = SharedLinear(weight)
        loss = step(inputs).square().sum()
        torch.autograd.grad(loss, x, retain_graph=True)
        loss.backward()
        del step, loss, inputs
        assert alive() is None
    finally:
        gc.enable()
