"""Checks of combinations of options: options without an effect are refused, rather than silently ignored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from regard.runtime.files import resolved


def refuse_idle(options: Mapping[str, object], expected: str) -> None:
    """Raise a ValueError if any of these options, which have no effect here, was given: is not None or False."""
    given = [name for name, value in options.items() if value is not None and value is not False]
    if given:
        raise ValueError(f"{', '.join(given)}: no effect here; {expected}")


def check_distinct(files: Mapping[str, Path | None]) -> None:
    """Raise a ValueError if two options name the same file to write: one would overwrite the other."""
    seen: dict[Path, str] = {}
    for option, file in files.items():
        if file is None:
            continue
        place = resolved(file)
        if place in seen and not _is_sink(place):
            raise ValueError(f"{seen[place]} and {option}: expected different files, got {str(file)!r} twice")
        seen[place] = option


def _is_sink(place: Path) -> bool:
    """Whether the path is no regular file but a device or pipe, such as /dev/null, that takes all output."""
    return place.exists() and not place.is_file()
