"""Labelled texts from files: a table of text and label, or JSON lines with `text` and `label`, each also as gzip.

Lines are read, tidied, skipped and reported as those of sentence pairs are: a text and its label are a pair. Further
columns and fields are never read, since they could leak the label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.text.pairs import (
    Corpus,
    Pair,
    Row,
    RowFormat,
    corpus_from_rows,
    has_lone_surrogate,
    is_json_lines,
    json_objects,
    pairs_from_rows,
    table_rows,
)

LABELLED = RowFormat(
    "labelled text", ("text", "label"), "expected lines of text TAB label, or a .jsonl with text and label"
)


def read_labelled(paths: Sequence[str | Path]) -> Corpus:
    """Read texts for training: pairs of a text (source) and its label (target). Other lines are skipped and counted."""
    return corpus_from_rows(_rows(paths), paths, LABELLED)


def read_gold(paths: Sequence[str | Path]) -> list[Pair]:
    """Read texts for evaluation: one pair per line, empty texts and repeats too; a line without a label is an error."""
    return pairs_from_rows(_rows(paths), paths, LABELLED)


def _rows(paths: Sequence[str | Path]) -> Iterator[Row]:
    if len(paths) != 1:
        raise ValueError(f"{len(paths)} files of labelled texts came; expected one")
    file = Path(paths[0])
    return map(_fields, json_objects(file)) if is_json_lines(file) else table_rows(file)


def _fields(record: dict[str, Any] | str) -> Row:
    """Return the fields `text` and `label`; a label may be an integer, as in many data sets."""
    if isinstance(record, str):
        return record
    for name in LABELLED.sides:
        if name not in record:
            return f"no {name} field"
    text, label = record["text"], record["label"]
    if isinstance(label, int) and not isinstance(label, bool):
        label = str(label)
    for name, value in zip(LABELLED.sides, (text, label), strict=True):
        if not isinstance(value, str):
            return f"{name!r} is not text"
        if has_lone_surrogate(value):
            return "half a surrogate pair"
    return text, label
