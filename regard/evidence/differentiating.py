"""Gradients of a model in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


@contextmanager
def differentiating(*modules: nn.Module) -> Iterator[list[Tensor]]:
    """Enable gradients; yield a list to which each call of one of the modules appends its output, as a leaf.

    cuDNN is disabled: its RNNs have no backward pass in evaluation mode. Training mode, in which they have one, would
    enable dropout.
    """
    outputs: list[Tensor] = []

    def capture(_: object, __: object, output: Tensor) -> Tensor:
        outputs.append(output.detach().requires_grad_())
        return outputs[-1]

    hooks = [module.register_forward_hook(capture) for module in modules]
    before = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = False
    try:
        with torch.enable_grad():
            yield outputs
    finally:
        torch.backends.cudnn.enabled = before
        for hook in hooks:
            hook.remove()
