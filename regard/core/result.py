"""What attention answers.

Both are nodes to torch's pytrees, so that torch.func, torch.compile and torch.export can return them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor
from torch.utils._pytree import MappingKey, register_pytree_node


@dataclass(frozen=True)
class Top:
    """The largest weights of each query: descending, ties to the lower position; unused slots are 0 and −1."""

    weights: Tensor
    """[..., T, k], without gradient"""
    positions: Tensor
    """int64 [..., T, k]"""


@dataclass(frozen=True)
class Result:
    """The context and whatever was asked for beside it; the rest is None."""

    context: Tensor
    """[..., T, Dv]"""
    weights: Tensor | None = None
    """[..., T, S], before dropout, differentiable"""
    top: Top | None = None
    lse: Tensor | None = None
    """[..., T]: log Σ exp of the energies after scale and temperature; −inf where there is nothing to look at"""
    chosen: Tensor | None = None
    """int64 [..., T]: the key that Hard chose; −1 where there is nothing to look at"""
    log_probability: Tensor | None = None
    """[..., T]: log softmax(energies) at the chosen key; 0 where there is nothing to look at"""


def _register(kind: type) -> None:
    """Fields that are None are left out: transforms want tensors."""

    def names(of: Any) -> list[str]:
        return [field.name for field in fields(of) if getattr(of, field.name) is not None]

    def flatten(of: Any) -> tuple[list[Any], list[str]]:
        return [getattr(of, name) for name in names(of)], names(of)

    def flatten_with_keys(of: Any) -> tuple[list[Any], list[str]]:
        return [(MappingKey(name), getattr(of, name)) for name in names(of)], names(of)

    def unflatten(values: Iterable[Any], given: list[str]) -> Any:
        return kind(**dict(zip(given, values, strict=True)))

    register_pytree_node(
        kind,
        flatten,
        unflatten,
        serialized_type_name=f"regard.{kind.__name__}",
        flatten_with_keys_fn=flatten_with_keys,
    )


for _kind in (Top, Result):
    _register(_kind)
