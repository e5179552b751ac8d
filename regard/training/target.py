"""The target distribution q' [V] of each token: the expected token y, smoothed, and mixed with a teacher's prediction.

    q  = (1 − ε) · onehot(y) + ε / V            label smoothing
    q' = (1 − λ) q + λ t = q + λ (t − q)        t [V]: the teacher's probabilities

Training towards t is word-level knowledge distillation (Kim and Rush 2016).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Target:
    """The targets of n tokens: expected [n], teacher [n, V] of any float type. Without a teacher, λ is 0."""

    expected: Tensor
    smoothing: float  # ε
    teacher: Tensor | None = None
    teacher_weight: float = 0.0  # λ

    def __getitem__(self, rows: slice) -> Target:
        teacher = None if self.teacher is None else self.teacher[rows]
        return Target(self.expected[rows], self.smoothing, teacher, self.teacher_weight)

    def teacher_change(self, dtype: torch.dtype) -> Tensor | None:
        """Return λ (t − q) [n, V], at least in float32: q' − q, or None without a teacher."""
        if self.teacher is None:
            return None
        change = self.teacher.to(torch.promote_types(dtype, torch.float32), copy=True)
        self.subtract_smoothed_(change)
        return change.mul_(self.teacher_weight)

    def smoothed_cross_entropy(self, log_probs: Tensor) -> Tensor:
        """Return − Σ q log p [n] for log p [n, V]."""
        losses = (self.smoothing - 1) * log_probs.gather(-1, self.expected[:, None])[:, 0]
        return losses - self.smoothing * log_probs.mean(-1) if self.smoothing else losses

    def subtract_smoothed_(self, gradient: Tensor) -> None:
        """Subtract q from a gradient [n, V], in place."""
        if self.smoothing:
            gradient -= self.smoothing / gradient.shape[-1]
        on_target = gradient.new_full((), self.smoothing - 1).expand(len(self.expected), 1)
        gradient.scatter_add_(-1, self.expected[:, None], on_target)
