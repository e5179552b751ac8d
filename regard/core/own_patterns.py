"""Checks and text of custom patterns: one clear error where a user's pattern is not as it should be."""

from __future__ import annotations

import reprlib
from typing import Protocol

import torch
from torch import Tensor

from regard.core.checks import shape


class HasAllows(Protocol):
    """The method that defines a pattern."""

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor: ...


def check_allows(pattern: HasAllows, queries: int, keys: int, position: int, device: torch.device | None) -> None:
    """Raise TypeError if `allows` does not return what it should for the first few pairs."""
    i = torch.arange(position, position + min(queries, 2), device=device)
    j = torch.arange(min(keys, 3), device=device)
    for lead in ((), (1, 1)):  # kernels check several residue classes and rows of the batch at once
        a, b = i.view(*lead, -1, 1), j.view(*lead, 1, -1)
        allowed, wanted = pattern.allows(a, b, keys), (*lead, len(i), len(j))
        if not isinstance(allowed, Tensor) or allowed.dtype is not torch.bool or allowed.shape != wanted:
            got = f"{allowed.dtype} {shape(allowed)}" if isinstance(allowed, Tensor) else type(allowed).__name__
            raise TypeError(
                f"pattern: {type(pattern).__name__}.allows: expected a bool tensor {shape(wanted)}, to which "
                f"i {shape(a)} and j {shape(b)} broadcast, got {got}"
            )


def check_hashable(pattern: object) -> None:
    """Raise TypeError if a pattern cannot be the key of a cache."""
    try:
        hash(pattern)
    except TypeError as reason:
        kind = type(pattern).__name__
        raise TypeError(f"pattern: expected {kind} to be hashable, as a frozen dataclass is, got {reason}") from None


def describe(pattern: object) -> str:
    """Return the class of a pattern with its fields, on one line: Every(step=3)."""
    fields = ", ".join(f"{name}={_short(value)}" for name, value in vars(pattern).items())
    return f"{type(pattern).__name__}({fields})"


def _short(value: object) -> str:
    return f"tensor {shape(value)}" if isinstance(value, Tensor) else reprlib.repr(value)
