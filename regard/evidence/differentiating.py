"""Gradients of a model in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def differentiating() -> Iterator[None]:
    """Enable gradients, and disable cuDNN: its RNNs have no backward pass in evaluation mode.

    Training mode, in which they have one, would enable dropout.
    """
    before = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = False
    try:
        with torch.enable_grad():
            yield
    finally:
        torch.backends.cudnn.enabled = before
