"""Where kernels are launched: Triton asks for the current device, not for that of the tensors."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def on(device: torch.device) -> AbstractContextManager[object]:
    """The device is the current one. (Going back, autograd sees to it.)"""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
