"""Argument checks. Every error is one sentence: the argument, what was expected, what was passed."""

from __future__ import annotations

from typing import Literal, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

_MAX_INT32 = 2**31 - 1  # positions and seeds are counted in 32 bits


def whole_number(owner: str, name: str, value: object, minimum: int = 0) -> int:
    """Return the value if it is an integer ≥ `minimum`, else raise ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= _MAX_INT32:
        limit = " and below 2³¹" if isinstance(value, int) and value > _MAX_INT32 else ""
        raise ValueError(f"{owner}: {name}: expected a whole number ≥ {minimum}{limit}, got {value!r}")
    return value


def positive(owner: str, name: str, value: object) -> float:
    """Return the value as a float if it is a number above 0, else raise ValueError."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise ValueError(f"{owner}: {name}: expected a number > 0, got {value!r}")
    return float(value)


def fraction(name: str, value: object) -> float:
    """Return the value as a float if it is in [0, 1), else raise ValueError."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 1:
        raise ValueError(f"{name}: expected a number in [0, 1), got {value!r}")
    return float(value)


def choices(name: str, options: object) -> None:
    """Raise ValueError if a field of a dataclass whose type is a Literal has none of its values."""
    for field, kind in get_type_hints(type(options)).items():
        if get_origin(kind) is Literal and getattr(options, field) not in get_args(kind):
            known = " or ".join(map(repr, get_args(kind)))
            raise ValueError(f"{name}: {field}: expected {known}, got {getattr(options, field)!r}")


def states(name: str, value: object, features: int | None = None) -> Tensor:
    """Return the value if it is a floating-point tensor [..., positions, features], else raise."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(value).__name__}")
    if value.dim() < 2:
        raise ValueError(f"{name}: expected at least 2 dims [..., positions, features], got {shape(value)}")
    if not value.dtype.is_floating_point:
        raise TypeError(f"{name}: expected floating-point numbers, got {value.dtype}")
    if features is not None and value.shape[-1] != features:
        raise ValueError(f"{name}: expected {features} features, got {shape(value)}")
    return value


def broadcast(*shapes: tuple[int, ...]) -> torch.Size:
    """Return what the shapes broadcast to. `torch.broadcast_shapes` imports sympy on its first call: 2 seconds."""
    dims = max(map(len, shapes))
    result = [1] * dims
    for sizes in shapes:
        for dim, size in enumerate(sizes, dims - len(sizes)):
            if size != 1 and result[dim] not in (1, size):
                raise ValueError(f"{', '.join(map(shape, shapes))}: they do not broadcast")
            result[dim] = size if size != 1 else result[dim]
    return torch.Size(result)


def common_leading(**given: Tensor) -> torch.Size:
    """Return what the leading dims of states [..., N, D] broadcast to."""
    first, *others = (x.shape[:-2] for x in given.values())
    if all(other == first for other in others):  # the usual case, without the cost of broadcasting
        return first
    try:
        return broadcast(first, *others)
    except ValueError:
        got = " and ".join(shape(x.shape[:-2]) for x in given.values())
        raise ValueError(f"{', '.join(given)}: expected leading dims that broadcast, got {got}") from None


def pairs(name: str, given: object, expected: tuple[int, ...], floating: bool) -> Tensor:
    """Return a bias (floating) or mask (bool) that broadcasts to [..., T, S], with at least two dims, else raise."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(given).__name__}")
    if floating and not given.dtype.is_floating_point:
        raise TypeError(f"{name}: expected floating-point numbers, got {given.dtype}; a mask of bool goes to `allowed`")
    if not floating and given.dtype is not torch.bool:
        raise TypeError(f"{name}: expected bool (True: may look), got {given.dtype}; numbers to add go to `bias`")
    try:
        fits = broadcast(given.shape, expected) == torch.Size(expected)
    except ValueError:
        fits = False
    if not fits:
        wanted = f"a shape that broadcasts to {shape(expected)} ([..., T, S])"
        raise ValueError(f"{name}: expected {wanted}, got {shape(given)}")
    return given.view((*[1] * (2 - given.dim()), *given.shape))


def energies(title: str, given: object, expected: tuple[int, ...]) -> Tensor:
    """Return the energies of a score if they are a floating-point tensor [..., T, S], else raise."""
    if not isinstance(given, Tensor):
        raise TypeError(f"score: {title}.energies: expected a tensor [..., T, S], got {type(given).__name__}")
    if not given.dtype.is_floating_point:
        raise TypeError(f"score: {title}.energies: expected floating-point numbers, got {given.dtype}")
    fits = given.shape[-2:] == expected[-2:] and given.dim() <= len(expected)
    aligned = expected[len(expected) - given.dim() :] if fits else ()
    if not fits or any(size not in (1, wanted) for size, wanted in zip(given.shape, aligned, strict=True)):
        raise ValueError(f"score: {title}.energies: expected {shape(expected)} ([..., T, S]), got {shape(given)}")
    return given


def shape(given: Tensor | tuple[int, ...]) -> str:
    """Format a shape for messages."""
    return str(list(given.shape if isinstance(given, Tensor) else given))
