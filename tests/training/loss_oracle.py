"""The loss with a teacher by torch's own cross-entropy, with probabilities as targets, and divergence; PAD is 0."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, one_hot


def mixed_target(expected: Tensor, smoothing: float, teacher: Tensor, weight: float) -> Tensor:
    """q' [N, V]: the smoothed target mixed with the teacher, whose rows serve both passes if it has half as many."""
    size = teacher.shape[1]
    smoothed = (1 - smoothing) * one_hot(expected, size).double() + smoothing / size
    return (1 - weight) * smoothed + weight * teacher.double().repeat(len(expected) // len(teacher), 1)


def pair_divergences(logits: Tensor) -> Tensor:
    """KL(p‖p') + KL(p'‖p) of each pair [N/2]."""
    first, second = (half.log_softmax(-1) for half in logits.chunk(2))
    both = (kl_div(a, b, log_target=True, reduction="none") for a, b in ((first, second), (second, first)))
    return sum(both, torch.zeros_like(first)).sum(-1)


def teacher_loss(
    logits: Tensor, expected: Tensor, smoothing: float, consistency: float, teacher: Tensor, weight: float
) -> tuple[Tensor, Tensor]:
    """(the mean loss; the cross-entropy of each row [N]) for logits [N, V] in float64, without padding rows."""
    real = (expected != 0).double()
    rows = cross_entropy(logits, mixed_target(expected, smoothing, teacher, weight), reduction="none") * real
    loss = rows.sum() / real.sum()
    if consistency:
        once = real.chunk(2)[0]
        loss = loss + 0.25 * consistency * (pair_divergences(logits) * once).sum() / once.sum()
    return loss, rows


def drawn_teacher(rows: int, size: int, draws: int = 64) -> Tensor:
    """Probabilities [rows, size] that are exact in bfloat16, and sum to 1 there: the shares of 64 draws."""
    chosen = (3 * torch.randn(rows, size)).softmax(-1).multinomial(draws, replacement=True)
    return one_hot(chosen, size).sum(1) / draws
