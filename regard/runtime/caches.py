"""Every cache of the process: each has a bound and a reason, and is listed and cleared here.

`cached` is for values of the host, `device_cache` (runtime/device_cache.py) for tensors. This module imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

Args = ParamSpec("Args")
Value = TypeVar("Value")

_CACHES: dict[str, tuple[Any, str]] = {}  # (the function with its cache, the reason) by name


class CacheReport(NamedTuple):
    """A cache: the function whose values it has, how many at most and now, and why it pays."""

    name: str
    maxsize: int
    entries: int
    reason: str


def cached(maxsize: int, reason: str) -> Callable[[Callable[Args, Value]], Callable[Args, Value]]:
    """Decorate a function of a module with `functools.lru_cache`, and register it."""

    def decorate(function: Callable[Args, Value]) -> Callable[Args, Value]:
        wrapper = lru_cache(maxsize=maxsize)(function)
        _CACHES[f"{function.__module__}.{function.__qualname__}"] = wrapper, reason
        return cast(Callable[Args, Value], wrapper)

    return decorate


def cache_report() -> list[CacheReport]:
    """Return a report on each cache of the modules that have been imported, by name."""
    caches = sorted(_CACHES.items())
    infos = [(name, wrapper.cache_info(), reason) for name, (wrapper, reason) in caches]
    return [CacheReport(name, info.maxsize, info.currsize, reason) for name, info, reason in infos]


def clear_caches() -> None:
    """Forget all cached values, except those that a CUDA graph may read."""
    for wrapper, _ in _CACHES.values():
        wrapper.cache_clear()
