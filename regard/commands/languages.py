"""The options `--from` and `--to` of several commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def languages(source: str | None, target: str | None) -> tuple[str, str] | None:
    """Return both languages, or None if neither is given; raise a ValueError if only one is."""
    if source is not None and target is not None:
        return source, target
    if source is not None or target is not None:
        raise ValueError("--from and --to go together: expected both or neither")
    return None


def languages_of(files: Sequence[Path], source: str | None, target: str | None) -> tuple[str, str] | None:
    """Return both languages, or None, for reading files; raise a ValueError if they have no effect on any file."""
    from regard.text.pairs import is_json_lines

    chosen = languages(source, target)
    if chosen is not None and not any(map(is_json_lines, files)):
        raise ValueError("--from, --to: no effect here; expected a .jsonl, in whose `translation` they name the sides")
    return chosen
