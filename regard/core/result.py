"""The results of attention.

Both classes are pytree nodes, so that torch.func, torch.compile and torch.export can return them.
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

    weights: Tensor  # [..., T, k], without gradient
    positions: Tensor  # int64 [..., T, k]


@dataclass(frozen=True)
class Result:
    """The context and the requested outputs; the others are None."""

    context: Tensor
    """[..., T, Dv]"""
    weights: Tensor | None = None
    """[..., T, S], before dropout, differentiable"""
    top: Top | None = None
    lse: Tensor | None = None
    """[..., T]: log Σ exp of the energies after scale and temperature; −inf where there is nothing to attend to"""
    chosen: Tensor | None = None
    """int64 [..., T]: the key that Hard chose; −1 where there is nothing to attend to"""
    log_probability: Tensor | None = None
    """[..., T]: log softmax(energies) at the chosen key; 0 where there is nothing to attend to"""


def _register(kind: type) -> None:
    """Register a dataclass as a pytree node. Fields that are None are left out: transforms expect tensors."""

    def names(node: Any) -> list[str]:
        return [field.name for field in fields(node) if getattr(node, field.name) is not None]

    def flatten(node: Any) -> tuple[list[Any], list[str]]:
        return [getattr(node, name) for name in names(node)], names(node)

    def flatten_with_keys(node: Any) -> tuple[list[Any], list[str]]:
        return [(MappingKey(name), getattr(node, name)) for name in names(node)], names(node)

    def unflatten(values: Iterable[Any], present: list[str]) -> Any:
        return kind(**dict(zip(present, values, strict=True)))

    name = f"regard.{kind.__name__}"
    register_pytree_node(kind, flatten, unflatten, serialized_type_name=name, flatten_with_keys_fn=flatten_with_keys)


for _kind in (Top, Result):
    _register(_kind)
