"""Labelled texts from files: a table of text and label, or JSON lines with `text` and `label`, each also as gzip.

Lines are read, tidied, skipped and reported as those of sentence pairs are: a text and its label are a pair. Further
columns and fields are never read, since they could leak the label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.text import pairs
from regard.text.pairs import Corpus, Pair, Row, RowFormat

EXPECTED = "expected lines of text TAB label, or a .jsonl with text and label"
LABELLED = RowFormat("labelled text", ("text", "label"), EXPECTED)


def read_labelled(paths: Sequence[str | Path]) -> Corpus:
    """Read texts for training: pairs of a text (source) and its label (target). Other lines are skipped and counted."""
    return pairs.corpus_from_rows(labelled_rows(paths), paths, LABELLED)


def read_gold(paths: Sequence[str | Path]) -> list[Pair]:
    """Read texts for evaluation: one pair per line, empty texts and repeats too; a line without a label is an error."""
    return pairs.pairs_from_rows(labelled_rows(paths), paths, LABELLED)


def labelled_rows(paths: Sequence[str | Path]) -> Iterator[Row]:
    """Yield the row of each line: a text and its label."""
    if len(paths) != 1:
        raise ValueError(f"{len(paths)} files of labelled texts came; expected one")
    file = Path(paths[0])
    return map(_fields, pairs.json_objects(file)) if pairs.has_records(file) else pairs.table_rows(file)


def _fields(record: dict[str, Any] | str) -> Row:
    """Return the fields `text` and `label`; a label may be an integer, as in many data sets."""
    if isinstance(record, str):
        return record
    for name in LABELLED.sides:
        if name not in record:
            return f"no {name} field"
    label = record["label"]
    if isinstance(label, int) and not isinstance(label, bool):
        record = record | {"label": str(label)}
    return pairs.text_fields(record, LABELLED.sides)
