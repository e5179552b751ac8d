"""Deterministic algorithms: on the same machine, every run computes the same numbers, bit for bit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils import deterministic as torch_deterministic

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
WORKSPACES = (":4096:8", ":16:8")  # values with which cuBLAS is deterministic; the first is the faster one


def reproducible(device: torch.device, on_gpu: bool) -> AbstractContextManager[None]:
    """Return a context in which computations on the device can be repeated bit for bit.

    On a CPU this always holds, given the same number of threads; on a GPU, where it costs
    time, only with `on_gpu`.
    """
    return deterministic_algorithms(device) if device.type == "cpu" or on_gpu else nullcontext()


@contextmanager
def deterministic_algorithms(device: torch.device) -> Iterator[None]:
    """Let torch use deterministic algorithms only; our own kernels follow its setting.

    On a CPU, it is the gradients of indexing that several threads would sum in any order. On a GPU, cuBLAS needs a
    fixed workspace, which it reads from the environment when CUDA starts.
    """
    if device.type == "cuda":
        fix_cublas_workspace()
    before = torch.get_deterministic_debug_mode()
    filled = torch_deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    # The same as `use_deterministic_algorithms(True)`, which also imports torch's compiler: almost a second.
    torch.set_deterministic_debug_mode("error")
    # torch would fill every new tensor with NaN, which takes time. No kernel reads what it has not written.
    torch_deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
        torch_deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]


def fix_cublas_workspace() -> None:
    """Set cuBLAS's workspace in the environment; raise a ValueError if it is too late or set to something else."""
    value = os.environ.get(WORKSPACE)
    if value in WORKSPACES:
        return
    if value is not None:
        raise ValueError(f"deterministic: expected {WORKSPACE} to be {' or '.join(WORKSPACES)}, got {value!r}")
    if torch.cuda.is_initialized():
        expected = f"expected {WORKSPACE}={WORKSPACES[0]} in the environment before"
        raise ValueError(f"deterministic: CUDA is in use already; {expected}")
    os.environ[WORKSPACE] = WORKSPACES[0]


def cumulative_sum(x: Tensor) -> Tensor:
    """Return the cumulative sums [..., N] along the last dimension.

    On a GPU torch has no deterministic algorithm for them. There, if one is asked for, each of log₂ N steps adds the
    sums of 1, 2, 4, … elements before.
    """
    if not (x.is_cuda and x.is_floating_point() and torch.are_deterministic_algorithms_enabled()):
        return x.cumsum(-1)
    return doubling_sum(x)


def doubling_sum(x: Tensor) -> Tensor:
    """Return the cumulative sums along the last dimension, by log₂ N additions of whole tensors."""
    step = 1
    while step < x.shape[-1]:
        x = x + functional.pad(x[..., :-step], (step, 0))
        step *= 2
    return x
