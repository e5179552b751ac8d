"""Files that come with a request: saved under safe names, and read as `regard evaluate` reads, up to a limit."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from fastapi import UploadFile

from regard.text.labelled import LABELLED, labelled_rows
from regard.text.pairs import PAIRS, Pair, Row, RowFormat, pairs_from_rows, rows_of

MAX_FILES = 2  # two parallel texts
MAX_NAME = 80  # characters
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def safe_name(given: str | None) -> str:
    """Return the name of a file without folders and odd characters; its ending stays, because it says the format."""
    last_part = re.split(r"[/\\]", given or "")[-1]
    return _UNSAFE.sub("_", last_part).lstrip(".")[-MAX_NAME:].lstrip(".") or "file"


async def save_uploads(files: Sequence[UploadFile], folder: Path) -> list[Path]:
    """Write the files of a request into a folder and return their paths; equal names are told apart by a number."""
    if not 1 <= len(files) <= MAX_FILES:
        raise ValueError(f"files: expected one, or two parallel texts, got {len(files)}")
    names = [safe_name(file.filename) for file in files]
    if len(set(names)) < len(names):
        names = [f"{number}-{name}" for number, name in enumerate(names, 1)]
    paths = [folder / name for name in names]
    for file, path in zip(files, paths, strict=True):
        await asyncio.to_thread(_copy, file, path)
    return paths


def _copy(file: UploadFile, path: Path) -> None:
    with path.open("xb") as out:
        shutil.copyfileobj(file.file, out)


async def read_uploaded_pairs(
    files: Sequence[UploadFile], limit: int, reverse: bool = False, languages: tuple[str, str] | None = None
) -> list[Pair]:
    """Return the sentence pairs of the files of a request, one per line; a line without two sides is an error."""
    with TemporaryDirectory(prefix="regard-") as folder:
        paths = await save_uploads(files, Path(folder))
        return await asyncio.to_thread(_read, lambda: rows_of(paths, languages), paths, PAIRS, limit, reverse)


async def read_uploaded_labels(files: Sequence[UploadFile], limit: int) -> list[Pair]:
    """Return the labelled texts of the file of a request, one per line; a line without a label is an error."""
    with TemporaryDirectory(prefix="regard-") as folder:
        paths = await save_uploads(files, Path(folder))
        return await asyncio.to_thread(_read, lambda: labelled_rows(paths), paths, LABELLED, limit)


def _read(
    rows: Callable[[], Iterable[Row]], paths: Sequence[Path], row_format: RowFormat, limit: int, reverse: bool = False
) -> list[Pair]:
    """Return a pair for each row; messages name the files as they were sent, without the folder."""
    names = [path.name for path in paths]
    try:
        pairs = pairs_from_rows(islice(rows(), limit + 1), names, row_format, reverse)
    except ValueError as error:
        raise ValueError(str(error).replace(f"{paths[0].parent}{os.sep}", "")) from None
    if len(pairs) > limit:
        raise ValueError(f"{' + '.join(names)}: expected at most {limit:,} lines, got more")
    return pairs
