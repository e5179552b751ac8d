"""Which transform of torch the operations run under: compiling, exporting, `torch.func`, tensors without numbers.

Lean kernels write into buffers and look at numbers to decide what to do next. Where operations are traced, batched or
carried out on shapes alone, that is impossible, and plain torch operations have to do.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch._subclasses import FakeTensor
from torch.autograd import forward_ad


def transform_of(states: Tensor) -> str | None:
    """Return what only plain operations can go through, in words; None: the operations simply run."""
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
    """Could a tensor that is made now belong to a transform, so that it must not be cached?"""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack() > 0
    )
