"""The state of `torch.autocast` on a device. The meta device, whose tensors have no data, has no autocast."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def autocast_dtype(device: torch.device) -> torch.dtype | None:
    """Return the dtype in which autocast computes matrix products; None: autocast is off."""
    kind = device.type
    return torch.get_autocast_dtype(kind) if kind != "meta" and torch.is_autocast_enabled(kind) else None


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which autocast is off, so that products keep the dtype of their factors."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)
