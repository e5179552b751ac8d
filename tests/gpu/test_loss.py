"""The loss's kernels on a GPU, with a teacher, against torch's own cross-entropy and divergence in float64."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import linear

from regard.training.loss import smoothed_loss
from regard.training.loss_device import MAX_VOCABULARY
from tests.gpu.drawn import CUDA
from tests.training.loss_oracle import drawn_teacher, teacher_loss

TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


@pytest.mark.parametrize("size", [33, 8000, MAX_VOCABULARY, MAX_VOCABULARY + 1])  # the last has no kernel
@pytest.mark.parametrize("teacher_weight", [0.3, 1.0])
@pytest.mark.parametrize("consistency", [0.0, 5.0])
@pytest.mark.parametrize("padding", [None, 0])
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_a_teacher_is_mixed_into_the_target(
    size: int, teacher_weight: float, consistency: float, padding: int | None, dtype: torch.dtype
) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    expected = torch.randint(1 if padding is None else 0, 5, (20,)).repeat(2)
    teacher = drawn_teacher(20 if consistency else 40, size)
    shapes = ((40, 16), (size, 16), (size,))
    tensors = [(torch.randn(shape) / 2).to(CUDA, dtype).requires_grad_() for shape in shapes]
    ours, each = smoothed_loss(
        *tensors, expected.to(CUDA), 0.1, padding, consistency, teacher.to(CUDA, dtype), teacher_weight
    )
    exact = [tensor.detach().double().cpu().requires_grad_() for tensor in tensors]
    right, rows = teacher_loss(linear(*exact), expected, 0.1, consistency, teacher, teacher_weight)
    gradients = torch.autograd.grad(ours, tensors), torch.autograd.grad(right, exact)
    for mine, theirs in ((ours, right), (each, rows), *zip(*gradients, strict=True)):
        assert float((mine.double().cpu() - theirs).norm() / theirs.norm()) < TOLERANCE[dtype]
