"""Gradients of a model in use, which is in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def differentiating() -> Iterator[None]:
    """Compute with gradients, and without cuDNN's RNNs: they have none in evaluation mode.

    Training mode, in which they have, would bring dropout with it.
    """
    before = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = False
    try:
        with torch.enable_grad():
            yield
    finally:
        torch.backends.cudnn.enabled = before
