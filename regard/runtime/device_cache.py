"""Tensors that are made once for whoever asks, and kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, partial, update_wrapper
from typing import Generic, ParamSpec, TypeVar

import torch

from regard.runtime.transforms import traced

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


class Kept(Generic[Asked, Found]):
    """A function whose results are kept, as by `functools.lru_cache`, for what holds tensors on a device. They are made
    outside of inference mode, so that autograd may use them later; and what is asked for while a GPU records is never
    dropped: the recording reads it. Under a transform of torch nothing is cached: its tensors mean nothing outside."""

    def __init__(self, make: Callable[Asked, Found], most: int) -> None:
        self._make, self._made = make, lru_cache(maxsize=most)(self._outside)
        self._recorded: dict[Hashable, Found] = {}
        update_wrapper(self, make)

    def __call__(self, *asked: Asked.args, **named: Asked.kwargs) -> Found:
        if traced():
            return self._make(*asked, **named)
        key = (asked, tuple(named.items()))
        if key in self._recorded:
            return self._recorded[key]
        found = self._made(*asked, **named)  # type: ignore[arg-type]
        if records():
            self._recorded[key] = found
        return found

    def _outside(self, *asked: Asked.args, **named: Asked.kwargs) -> Found:
        with torch.inference_mode(False):
            return self._make(*asked, **named)

    def forget(self) -> None:
        self._made.cache_clear()
        self._recorded.clear()


def kept(most: int) -> Callable[[Callable[Asked, Found]], Kept[Asked, Found]]:
    """Keep the results of so many questions, and those that were recorded."""
    return partial(Kept, most=most)


def records() -> bool:
    """Is a GPU recording what it is asked for?"""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
