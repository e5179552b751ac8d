"""An LRU cache for functions that return device tensors."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, partial, update_wrapper
from typing import Generic, ParamSpec, TypeVar

import torch

from regard.runtime.transforms import traced

Args = ParamSpec("Args")
Value = TypeVar("Value")


class DeviceCache(Generic[Args, Value]):
    """A function with an LRU cache.

    Values are created outside inference mode, so that autograd can use them later. Values requested during CUDA graph
    capture are never evicted, because the graph reads them; there are as many as shapes that were captured. Under a
    transform of torch nothing is cached: its tensors have no meaning outside it.
    """

    def __init__(self, function: Callable[Args, Value], maxsize: int) -> None:
        self._function, self._cached = function, lru_cache(maxsize=maxsize)(self._outside_inference_mode)
        self._pinned_by_graphs: dict[Hashable, Value] = {}
        update_wrapper(self, function)

    def __call__(self, *args: Args.args, **kwargs: Args.kwargs) -> Value:
        if traced():
            return self._function(*args, **kwargs)
        key = (args, tuple(kwargs.items()))
        if key in self._pinned_by_graphs:
            return self._pinned_by_graphs[key]
        value = self._cached(*args, **kwargs)  # type: ignore[arg-type]
        if is_capturing():
            self._pinned_by_graphs[key] = value
        return value

    def _outside_inference_mode(self, *args: Args.args, **kwargs: Args.kwargs) -> Value:
        with torch.inference_mode(False):
            return self._function(*args, **kwargs)

    def clear(self) -> None:
        """Forget all values."""
        self._cached.cache_clear()
        self._pinned_by_graphs.clear()


def device_cache(maxsize: int) -> Callable[[Callable[Args, Value]], DeviceCache[Args, Value]]:
    """Decorate a function with a `DeviceCache`."""
    return partial(DeviceCache, maxsize=maxsize)


def is_capturing() -> bool:
    """Is the current stream capturing a CUDA graph?"""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
