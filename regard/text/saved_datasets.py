"""Folders that `save_to_disk` of Hugging Face's `datasets` wrote: rows as records, as of JSON lines.

The package is needed only for them. It maps the folder's Arrow files into memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STATE, SPLITS = "state.json", "dataset_dict.json"
RECORDS_AT_ONCE = 1_000


def is_saved_dataset(path: Path) -> bool:
    """Return whether the path is a folder of a saved dataset, or of several splits of one."""
    return (path / STATE).is_file() or (path / SPLITS).is_file()


def dataset_files(folder: Path) -> list[Path]:
    """Return the files that hold the rows of a saved dataset, in order; none for a folder of splits."""
    if not (folder / STATE).is_file():
        return []
    names = [each["filename"] for each in json.loads((folder / STATE).read_text(encoding="utf-8"))["_data_files"]]
    return [folder / STATE, *(folder / name for name in names)]


def open_dataset(folder: Path) -> Any:
    """Return the dataset of a folder; raise a ValueError if it has splits, or if the package is not there."""
    if (folder / SPLITS).is_file():
        splits = json.loads((folder / SPLITS).read_text(encoding="utf-8")).get("splits", [])
        raise ValueError(f"{folder}: holds the splits {', '.join(splits)}; expected one of them: {folder}/{splits[0]}")
    try:
        from datasets import load_from_disk
    except ImportError:
        raise ValueError(f"{folder}: a saved dataset needs the package `datasets`: pip install datasets") from None
    try:
        return load_from_disk(str(folder))
    except Exception as error:  # the package raises errors of many kinds for damaged folders
        raise ValueError(f"{folder}: not a readable dataset: {str(error).splitlines()[0]}") from None


def records(dataset: Any, first: int = 0, last: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset as records; class labels by their names."""
    last = len(dataset) if last is None else last
    names = {column: feature.names for column, feature in dataset.features.items() if getattr(feature, "names", None)}
    for begin in range(first, last, RECORDS_AT_ONCE):
        columns = dataset[begin : min(last, begin + RECORDS_AT_ONCE)]
        for values in zip(*columns.values(), strict=True):
            record = dict(zip(columns, values, strict=True))
            for column, classes in names.items():
                if isinstance(record[column], int) and 0 <= record[column] < len(classes):
                    record[column] = classes[record[column]]
            yield record
