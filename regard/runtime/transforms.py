"""Detection of torch's transforms: compilation, export, `torch.func`, and fake or meta tensors.

Our kernels write into buffers and branch on the values of tensors. Where operations are traced, batched or run on
shapes alone, that is impossible, and plain torch operations are used instead.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch._subclasses import FakeTensor
from torch.autograd import forward_ad


def active_transform(states: Tensor) -> str | None:
    """Return a description of the transform that allows plain operations only; None: there is none."""
    if torch.compiler.is_compiling():
        return "torch.compile or torch.export is tracing"
    if torch._C._are_functorch_transforms_active():
        return "it runs inside a transform of torch.func"
    if forward_ad._current_level >= 0:
        return "forward-mode differentiation is on"
    if states.is_meta or isinstance(states, FakeTensor):
        return "these tensors have shapes, but no numbers"
    return None


def traced() -> bool:
    """Return whether a tensor created now could belong to a transform, so that it must not be cached."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack() > 0
    )
