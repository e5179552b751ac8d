"""Options that would do nothing are refused: whoever gives one expects something of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def refuse_idle(options: Mapping[str, object], expected: str) -> None:
    """Raise a ValueError if any of the options was given, where it has no effect; None and False are not given."""
    given = [name for name, value in options.items() if value is not None and value is not False]
    if given:
        raise ValueError(f"{', '.join(given)}: no effect here; {expected}")


def check_distinct(files: Mapping[str, Path | None]) -> None:
    """Raise a ValueError if two options name the same file to write: only one of them could be read there."""
    seen: dict[Path, str] = {}
    for option, file in files.items():
        if file is None:
            continue
        place = Path(file).resolve()
        if place in seen and not _is_sink(place):
            raise ValueError(f"{seen[place]} and {option}: expected different files, got {str(file)!r} twice")
        seen[place] = option


def _is_sink(place: Path) -> bool:
    """Something that takes whatever is written, as /dev/null and pipes do."""
    return place.exists() and not place.is_file()
