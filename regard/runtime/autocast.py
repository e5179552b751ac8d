"""What `torch.autocast` asks for on a device; tensors without numbers (device "meta") know no autocast."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def autocast_dtype(device: torch.device) -> torch.dtype | None:
    """Return the dtype in which autocast wants products now; None: it is off."""
    kind = device.type
    return torch.get_autocast_dtype(kind) if kind != "meta" and torch.is_autocast_enabled(kind) else None


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Keep autocast from narrowing products meanwhile."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)
