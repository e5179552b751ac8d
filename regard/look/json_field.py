"""JSON values that know their path in the document, so that errors name the path, what was expected and what came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_SHOWN = 60  # characters of a value that an error shows


@dataclass(frozen=True)
class Field:
    """A JSON value and its path, such as `source.pieces[3]`. Accessors check the type and raise a ValueError."""

    value: Any
    place: str = ""

    def wrong(self, expected: str) -> ValueError:
        """Return the error that says what was expected here."""
        shown = repr(self.value)
        shown = shown if len(shown) <= MAX_SHOWN else shown[:MAX_SHOWN] + "…"
        return ValueError(f"{self.place}: expected {expected}, got {shown}")

    def __getitem__(self, name: str) -> Field:
        """Return a required field of an object."""
        field = self.get(name)
        if field is None:
            raise ValueError(f"{self._path_of(name)}: expected it, and there is none")
        return field

    def get(self, name: str) -> Field | None:
        """Return an optional field of an object, None if it is missing."""
        return Field(self.value[name], self._path_of(name)) if name in self.object() else None

    def each(self, name: str) -> Iterator[Field]:
        """Return the items of an optional list of an object."""
        return self[name].items() if self.get(name) else iter(())

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

    def numbers(self, *names: str) -> list[float]:
        """Return required fields of an object that are numbers."""
        return [self[name].number() for name in names]

    def number(self) -> float:
        if not isinstance(self.value, (int, float)) or isinstance(self.value, bool):
            raise self.wrong("a number")
        try:
            return float(self.value)
        except OverflowError:
            raise self.wrong("a number that a float can hold") from None

    def fraction(self) -> float:
        if not 0 <= self.number() <= 1:
            raise self.wrong("a number from 0 to 1")
        return self.number()

    def integer(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not 0 <= self.value < 2**63:
            raise self.wrong("a whole number of at least 0")
        return self.value

    def matrix(self, dims: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return nested lists of finite numbers as an array with `dims` dimensions."""
        try:
            array = np.array(self.value)
        except (ValueError, OverflowError):
            raise self.wrong(f"numbers in {dims} dims, as many in each row") from None
        if array.ndim != dims:
            raise ValueError(f"{self.place}: expected numbers in {dims} dims, got {array.ndim}")
        if array.size and array.dtype.kind not in "iuf":
            raise self.wrong("numbers")
        with np.errstate(over="ignore"):
            values = array.astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.place}: expected finite numbers")
        return values

    def _path_of(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name
