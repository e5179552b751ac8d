"""Consistency training: two passes over a batch, with different dropout, should predict the same.

This is R-Drop (Wu et al. 2021):

    p = softmax(z), p' = softmax(z')      of the two passes, for one target token
    loss = ½ [CE(p) + CE(p') + α · ½ (KL(p‖p') + KL(p'‖p))]

With d = log p − log p', the gradients of the divergences are

    ∂KL(p‖p')/∂z = p ∘ (d − KL(p‖p')),      ∂KL(p'‖p)/∂z = p − p'

and those of z' follow by exchanging the passes. If the second pass sees a source and target with some tokens masked,
this is SimCut (Gao et al. 2022).
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.training.target import Target


def paired_rows(first: Tensor, second: Tensor, target: Target, weight: float) -> tuple[Tensor, ...]:
    """Return (CE of the first pass [n]; of the second; α · ½ (KL + KL) [n]; ∂z; ∂z') for logits z, z' [n, V].

    The gradients [n, V] are those of CE(p) + CE(p') + α · ½ (KL + KL), summed over rows. `weight` is α.
    """
    log_first, log_second = torch.log_softmax(first, -1), torch.log_softmax(second, -1)
    difference = log_first - log_second  # d
    p_first, p_second = log_first.exp(), log_second.exp()
    forward = (p_first * difference).sum(-1, keepdim=True)  # KL(p‖p')
    backward = -(p_second * difference).sum(-1, keepdim=True)
    towards = p_first - p_second
    half = 0.5 * weight
    grad_first = p_first * (1 + half * (difference - forward)) + half * towards
    grad_second = p_second * (1 - half * (difference + backward)) - half * towards
    losses = [target.smoothed_cross_entropy(log_first), target.smoothed_cross_entropy(log_second)]
    change = target.teacher_change(first.dtype)
    for loss, log_probs, gradient in zip(losses, (log_first, log_second), (grad_first, grad_second), strict=True):
        target.subtract_smoothed_(gradient)
        if change is not None:
            loss -= (change * log_probs).sum(-1)
            gradient -= change
    return *losses, half * (forward + backward)[:, 0], grad_first, grad_second
