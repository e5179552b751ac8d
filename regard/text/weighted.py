"""Data from several sources, each with a weight: how many times its pairs are seen in an epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Weighted:
    """Files or texts of pairs, as `regard.train` takes them, and their weight.

    A pair of weight w is seen w times in an epoch. The fraction of w is drawn anew in each epoch: of pairs with weight
    0.5, an epoch has half; with weight 2.25, every pair twice and a quarter of them once more.
    """

    data: Any
    weight: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.weight, bool) or not isinstance(self.weight, int | float):
            raise ValueError(f"weight: expected a number above 0, got {self.weight!r}")
        if not 0 < self.weight < math.inf:
            raise ValueError(f"weight: expected a number above 0, got {self.weight}")


def weighted_parts(data: Any) -> list[Weighted] | None:
    """Return the parts of the data if they are weighted; None if they are not. Raise a ValueError if only some are."""
    if isinstance(data, Weighted):
        return [data]
    if not isinstance(data, Sequence) or isinstance(data, str) or not any(isinstance(each, Weighted) for each in data):
        return None
    for each in data:
        if not isinstance(each, Weighted):
            raise ValueError(f"data: expected every part as Weighted(data, weight), got {each!r} beside them")
    return list(data)


def parse_weighted(text: str) -> Weighted:
    """Parse FILE, FILE:WEIGHT, or SOURCE,TARGET:WEIGHT for two parallel text files.

    What names an existing file is that file, even if there is a colon or a comma in its name.
    """
    path, colon, weight = text.rpartition(":")
    if Path(text).exists() or not colon or not _is_number(weight):
        return Weighted(_files(text))
    return Weighted(_files(path), float(weight))


def drawn_rows(weights: NDArray[np.float64], seed: int, epoch: int) -> NDArray[np.int64]:
    """Return the rows of an epoch, in order, each as often as its weight says: a pure function of (seed, epoch)."""
    rng = np.random.default_rng([seed, epoch, 2])
    counts = np.floor(weights + rng.random(len(weights))).astype(np.int64)
    if not counts.any():  # an epoch has at least one pair
        counts[rng.integers(len(counts))] = 1
    return np.repeat(np.arange(len(weights)), counts)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _files(text: str) -> list[Path]:
    """Return the file of this name, or two files whose names are separated by a comma."""
    source, comma, target = text.partition(",")
    return [Path(source), Path(target)] if comma and not Path(text).exists() else [Path(text)]
