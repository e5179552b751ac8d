"""Values of a JSON document that know where they stand, so that an error names the place, what came and what was
expected there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

SHOWN = 60
"""characters of a value that an error shows"""


@dataclass(frozen=True)
class Field:
    """A value, and its place, such as `source.pieces[3]`."""

    value: Any
    place: str = ""

    def wrong(self, expected: str) -> ValueError:
        """The error that says what was expected here."""
        shown = repr(self.value)
        shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "…"
        return ValueError(f"{self.place}: expected {expected}, got {shown}")

    def __getitem__(self, name: str) -> Field:
        """A field that an object must have."""
        found = self.get(name)
        if found is None:
            raise ValueError(f"{self._inside(name)}: expected it, and there is none")
        return found

    def get(self, name: str) -> Field | None:
        """A field that an object may have."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return Field(self.value[name], self._inside(name)) if name in self.value else None

    def each(self, name: str) -> Iterator[Field]:
        """The items of a list that an object may have."""
        found = self.get(name)
        return iter(()) if found is None else found.items()

    def items(self) -> Iterator[Field]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return (Field(value, f"{self.place}[{number}]") for number, value in enumerate(self.value))

    def object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return dict(self.value)

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("text")
        return self.value

    def number(self) -> float:
        if not isinstance(self.value, (int, float)) or isinstance(self.value, bool):
            raise self.wrong("a number")
        try:
            return float(self.value)
        except OverflowError:
            raise self.wrong("a number that a float can hold") from None

    def whole(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not 0 <= self.value < 2**63:
            raise self.wrong("a whole number of at least 0")
        return self.value

    def matrix(self, dims: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Nested lists of numbers, all of a depth and of finite values."""
        try:
            found = np.array(self.value)
        except (ValueError, OverflowError):
            raise self.wrong(f"numbers in {dims} dims, as many in each row") from None
        if found.ndim != dims:
            raise ValueError(f"{self.place}: expected numbers in {dims} dims, got {found.ndim}")
        if found.size and found.dtype.kind not in "iuf":
            raise self.wrong("numbers")
        with np.errstate(over="ignore"):
            values = found.astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.place}: expected finite numbers")
        return values

    def _inside(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name
