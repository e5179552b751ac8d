"""The loss's kernels, in Triton's interpreter, against torch's own cross-entropy and divergence."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

pytest.importorskip("triton", minversion="3.4")  # older interpreters do not know the numpy of today
from regard.training.loss_device import paired_losses_, row_losses_
from regard.training.target import Target
from tests.training.loss_oracle import drawn_teacher, mixed_target, pair_divergences

teachers = pytest.mark.parametrize(
    ("teacher_weight", "dtype"), [(0.0, None), (0.3, torch.float32), (1.0, torch.bfloat16)]
)


def drawn_target(
    expected: Tensor, rows: int, smoothing: float, weight: float, dtype: torch.dtype | None
) -> tuple[Target, Tensor]:
    """(a target with a teacher of this type, or without one; its distributions in float64)."""
    teacher = drawn_teacher(rows, 37)
    given = None if dtype is None else teacher.to(dtype)
    return Target(expected, smoothing, given, weight), mixed_target(expected, smoothing, teacher, weight)


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("counted", [True, False])
@teachers
def test_losses_and_gradient_are_those_of_cross_entropy(
    with_bias: bool, smoothing: float, counted: bool, teacher_weight: float, dtype: torch.dtype | None
) -> None:
    logits, bias, expected = 3 * torch.randn(5, 37), torch.randn(37), torch.tensor([0, 36, 3, 3, 8])
    counts = torch.tensor([1.0, 0.0, 2.5, 1.0, 0.5]) if counted else None
    target, distributions = drawn_target(expected, 5, smoothing, teacher_weight, dtype)
    exact = logits.double().requires_grad_()
    right = cross_entropy(exact + bias if with_bias else exact, distributions, reduction="none")
    weighed = right if counts is None else right * counts
    (gradient,) = torch.autograd.grad(weighed.mean(), exact)
    losses = row_losses_(logits, bias if with_bias else None, target, counts)
    torch.testing.assert_close(losses.double(), right.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(logits.double(), gradient, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("counted", [True, False])
@teachers
def test_pairs_have_the_gradient_of_cross_entropy_and_divergence(
    with_bias: bool, smoothing: float, counted: bool, teacher_weight: float, dtype: torch.dtype | None
) -> None:
    """The first three rows and the last three are two passes over the same tokens."""
    logits, bias, expected = 3 * torch.randn(6, 37), torch.randn(37), torch.tensor([0, 36, 3, 0, 36, 3])
    counts = torch.tensor([1.5, 0.0, 2.5, 1.5, 0.0, 2.5]) if counted else None
    target, distributions = drawn_target(expected, 3, smoothing, teacher_weight, dtype)
    exact = logits.double().requires_grad_()
    shifted = exact + bias if with_bias else exact
    entropy = cross_entropy(shifted, distributions, reduction="none")
    halves = (0.7 * 0.5 * pair_divergences(shifted) / 2).repeat(2)  # α · ½ (KL + KL), half of it for each row
    rows = entropy + halves
    (gradient,) = torch.autograd.grad((rows if counts is None else rows * counts).mean(), exact)
    losses, divergence = paired_losses_(logits, bias if with_bias else None, target, counts, 0.7)
    torch.testing.assert_close(losses.double(), entropy.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(divergence.double(), halves.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(logits.double(), gradient, atol=1e-6, rtol=1e-5)


def test_nothing() -> None:
    nothing = torch.zeros(0, 4), None, Target(torch.zeros(0, dtype=torch.int64), 0.1), None
    assert [each.shape for each in paired_losses_(*nothing, 1.0)] == [(0,), (0,)]
    assert row_losses_(*nothing).shape == (0,)
