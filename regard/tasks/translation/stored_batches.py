"""The batches of an epoch of a large corpus, as a sequence in which each is made when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, overload

import torch

from regard.corpora.examples import StoredEpoch
from regard.text.examples import Example
from regard.training.task import MakeBatch

MakeTensors = Callable[[Sequence[int], Sequence[Example], torch.device], Any]


class StoredBatches(Sequence[MakeBatch]):
    """Functions that return the batches of an epoch, by their number or, with a slice, the rest of them."""

    def __init__(self, epoch: StoredEpoch, make: MakeTensors, numbers: range | None = None) -> None:
        """`make` returns the tensors of rows and their examples; `numbers`: which batches; None: all."""
        self._epoch, self._make = epoch, make
        self._numbers = range(len(epoch)) if numbers is None else numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> MakeBatch: ...

    @overload
    def __getitem__(self, index: slice) -> StoredBatches: ...

    def __getitem__(self, index: int | slice) -> MakeBatch | StoredBatches:
        if isinstance(index, slice):
            return StoredBatches(self._epoch, self._make, self._numbers[index])
        return partial(self._batch, self._numbers[index])

    def _batch(self, number: int, device: torch.device) -> Any:
        return self._make(*self._epoch.batch(number), device)
