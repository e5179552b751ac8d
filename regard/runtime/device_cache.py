"""An LRU cache for functions that return device tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, update_wrapper, wraps
from typing import Generic, ParamSpec, TypeVar

import torch
from torch import Tensor

from regard.runtime.caches import cached
from regard.runtime.transforms import traced

Args = ParamSpec("Args")
Value = TypeVar("Value")


_CAPTURING = threading.local()  # `values`: the list of the graph that this thread captures
_READ_BY_UNKNOWN_GRAPHS: dict[int, object] = {}
"""values requested while a caller's own code captures a graph. They live as long as the process: nothing says when that
graph ends, and a replay after that would read freed memory without an error. They are as few as the shapes that are
captured, each once; a caller who captures inside `retained_values` owns them instead."""


class DeviceCache(Generic[Args, Value]):
    """A function with an LRU cache.

    Values are created outside inference mode, so that autograd can use them later. A value requested during the capture
    of a CUDA graph lives at least as long as the graph, which reads it at every replay. Under a transform of torch
    nothing is cached: its tensors have no meaning outside it.
    """

    def __init__(self, function: Callable[Args, Value], maxsize: int, reason: str) -> None:
        @cached(maxsize, reason)
        @wraps(function)
        def outside_inference_mode(*args: Args.args, **kwargs: Args.kwargs) -> Value:
            with torch.inference_mode(False):
                return function(*args, **kwargs)

        self._function, self._cached = function, outside_inference_mode
        update_wrapper(self, function)

    def __call__(self, *args: Args.args, **kwargs: Args.kwargs) -> Value:
        if traced():
            return self._function(*args, **kwargs)
        value = self._cached(*args, **kwargs)
        if is_capturing():
            _retain(value)
        return value


def device_cache(maxsize: int, reason: str) -> Callable[[Callable[Args, Value]], DeviceCache[Args, Value]]:
    """Decorate a function with a `DeviceCache`."""
    return partial(DeviceCache, maxsize=maxsize, reason=reason)


@contextmanager
def retained_values(values: list[object]) -> Iterator[None]:
    """Append every cached value that this thread's capture reads to a list, which the graph's owner keeps."""
    _CAPTURING.values = values
    try:
        yield
    finally:
        del _CAPTURING.values


def _retain(value: object) -> None:
    values: list[object] | None = getattr(_CAPTURING, "values", None)
    if values is None:
        _READ_BY_UNKNOWN_GRAPHS[id(value)] = value
    else:
        values.append(value)


def is_capturing() -> bool:
    """Is the current stream capturing a CUDA graph?"""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


@device_cache(maxsize=256, reason="copying numbers to a GPU makes Python wait, and a CUDA graph cannot capture it")
def device_constant(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a tensor of a few numbers, such as the indices of heads or the weights of labels."""
    return torch.tensor(values, dtype=dtype, device=device)
