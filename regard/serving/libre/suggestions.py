"""Better translations that clients suggest, as pairs in a file that a training can read."""

from __future__ import annotations

from pathlib import Path

from regard.serving.errors import RequestError
from regard.text.normal import tidy


class SuggestionFile:
    """Adds pairs to a .tsv: source, target, and the codes of their languages.

    A server with models of several pairs of languages has a file for each: NAME-en-mr.tsv.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes

    def add(self, source: str, target: str, languages: tuple[str, str], several: bool) -> None:
        """Add a pair; raise a RequestError if the file is full."""
        code = "-".join(languages)
        path = self._path.with_name(f"{self._path.stem}-{code}{self._path.suffix}") if several else self._path
        line = "\t".join((tidy(source), tidy(target), *languages)) + "\n"
        size = path.stat().st_size if path.exists() else 0
        if size + len(line.encode()) > self._max_bytes:
            raise RequestError(403, "suggestions: the server takes no more of them")
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(line)
