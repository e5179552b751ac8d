"""`--from` and `--to`, which several commands have."""

from __future__ import annotations


def languages(source: str | None, target: str | None) -> tuple[str, str] | None:
    """Both, or None."""
    if source is not None and target is not None:
        return source, target
    if source is not None or target is not None:
        raise ValueError("--from and --to go together: expected both or neither")
    return None
