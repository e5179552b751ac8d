"""What the card of a model must be, wherever it comes from: values that are read have their types and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from regard.text.pairs import has_lone_surrogate

MAX_DEPTH = 16
MAX_TOKENS = 1_000_000  # of a length
MAX_SHOWN = 60  # characters of a value that an error shows


def check_card(card: Any) -> None:
    """Raise a ValueError if a value that is used is not what training writes, or nothing could be made of the rest."""
    _check_depth(card)
    for name, (expected, is_right) in _FIELDS.items():
        if (name == "task" or name in card) and not is_right(card.get(name)):
            raise ValueError(f"{name}: expected {expected}, got {shown(card.get(name))}")


def shown(value: object) -> str:
    """Return a value as an error shows it."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def _check_depth(value: Any, depth: int = 0) -> None:
    """Raise a ValueError for too deep a tree: it could be read, and not be written again."""
    if depth > MAX_DEPTH:
        raise ValueError(f"expected at most {MAX_DEPTH} levels of JSON, got more")
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _check_depth(each, depth + 1)


def is_number(value: object) -> bool:
    """Return whether a value of JSON is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_labels(value: Any) -> bool:
    if value is None:  # as if there were none: they are missed where they are needed
        return True
    if not isinstance(value, list) or not value:
        return False
    return len({each for each in value if isinstance(each, str) and not has_lone_surrogate(each)}) == len(value)


def _are_languages(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value)


def _is_length(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_token_count(value.get(name)) for name in ("ratio", "margin"))


def _is_token_count(value: Any) -> bool:
    return is_number(value) and 0 <= value <= MAX_TOKENS


def _is_source_length(value: Any) -> bool:
    return isinstance(value, int) and _is_token_count(value)


_FIELDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "task": ("its name", lambda value: isinstance(value, str)),
    "labels": ("different texts", _are_labels),
    "languages": ("two names, or nothing", _are_languages),
    "length": ("`ratio` and `margin`, numbers of at least 0", _is_length),
    "longest_source": (f"a whole number up to {MAX_TOKENS:,}", _is_source_length),
    "several_sentences": ("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1),
    "temperature": ("a number above 0", lambda value: is_number(value) and 1e-6 <= value <= 1e6),
    "data": ("an object", lambda value: isinstance(value, dict)),
    "parameters": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "scores": ("an object", lambda value: isinstance(value, dict)),
    "tuned_from": ("an object", lambda value: isinstance(value, dict)),
    "best": ("an object", lambda value: isinstance(value, dict)),
}
"""fields of a card → what is expected there, and whether a value is that"""
