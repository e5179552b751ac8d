"""The current CUDA device, for code that does not ask tensors for theirs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def device_guard(device: torch.device) -> AbstractContextManager[object]:
    """Make a CUDA device the current one meanwhile: Triton launches there. (Autograd does so by itself.)"""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
