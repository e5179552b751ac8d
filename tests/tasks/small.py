"""Small runs of `train`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import regard
from regard.tasks.train import train
from regard.tasks.translation.predictor import Translator
from tests.training import toy


def small(out: Path, pairs: Any = toy.PAIRS, settings: dict[str, Any] | None = None, **options: Any) -> Translator:
    return train(pairs, out, settings=toy.TINY | (settings or {}), device="cpu", **options)


def usable(folder: Path) -> None:
    """Loads, has finite weights, and answers."""
    assert all(bool(tensor.isfinite().all()) for tensor in toy.weights(folder).values())
    result = regard.load(folder, "cpu").translate(["The boy sees a mango.", ""])
    assert len(result) == 2 and isinstance(result[0], str) and result[1] == ""
