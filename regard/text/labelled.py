"""Labelled texts from files: a table of text and label, or JSON lines with `text` and `label`, each also as gzip.

Lines are read, tidied, skipped and told as those of sentence pairs are: a text and its label are a pair. Further
columns and fields are never looked at, whatever they might give away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.text.pairs import (
    Corpus,
    Form,
    Pair,
    Row,
    broken,
    collected,
    every_one,
    is_json_lines,
    json_objects,
    table_rows,
)

LABELLED = Form("labelled text", ("text", "label"), "expected lines of text TAB label, or a .jsonl with text and label")


def read_labelled(paths: Sequence[str | Path]) -> Corpus:
    """For training: a pair's source is a text, its target the label. Lines that give none are skipped and counted."""
    return collected(_rows(paths), paths, LABELLED)


def read_gold(paths: Sequence[str | Path]) -> list[Pair]:
    """For evaluation: one for each line, empty texts and repeats too; a line without a label is an error."""
    return every_one(_rows(paths), paths, LABELLED)


def _rows(paths: Sequence[str | Path]) -> Iterator[Row]:
    if len(paths) != 1:
        raise ValueError(f"{len(paths)} files of labelled texts came; expected one")
    file = Path(paths[0])
    return map(_fields, json_objects(file)) if is_json_lines(file) else table_rows(file)


def _fields(found: dict[str, Any] | str) -> Row:
    """`text` and `label`; a label may be a whole number, as many data sets have it."""
    if isinstance(found, str):
        return found
    for name in LABELLED.sides:
        if name not in found:
            return f"no {name} field"
    text, label = found["text"], found["label"]
    if isinstance(label, int) and not isinstance(label, bool):
        label = str(label)
    for name, value in zip(LABELLED.sides, (text, label), strict=True):
        if not isinstance(value, str):
            return f"{name!r} is not text"
        if broken(value):
            return "half a surrogate pair"
    return text, label
