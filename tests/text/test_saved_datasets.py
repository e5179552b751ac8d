"""Folders of Hugging Face's `datasets`, as data for training and evaluation."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from regard.text.labelled import read_labelled
from regard.text.pairs import Pair, read_pairs, read_references


def without_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir()
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    monkeypatch.setitem(sys.modules, "datasets", None)
    return folder


def test_the_package_is_named_if_it_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = without_package(tmp_path / "saved", monkeypatch)
    for read in (read_pairs, read_references, read_labelled):
        with pytest.raises(ValueError, match="a saved dataset needs the package `datasets`: pip install datasets"):
            read([folder])


def test_one_split_is_expected(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(ValueError, match=rf"holds the splits train, test; expected one of them: {tmp_path}/train"):
        read_pairs([tmp_path])


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read .*: Is a directory"):
        read_pairs([tmp_path])


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(ValueError, match="not a readable dataset"):
        read_pairs([tmp_path])


def test_translations_fields_and_labels(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"en": "a", "mr": "b"}, {"en": "c", "mr": "d"}, {"en": "a", "mr": "b"}, {"en": "", "mr": "x"}]
    datasets.Dataset.from_dict({"translation": rows, "id": [1, 2, 3, 4]}).save_to_disk(tmp_path / "t")
    corpus = read_pairs([tmp_path / "t"])
    assert corpus.pairs == [Pair("a", "b", 1), Pair("c", "d", 2)]
    assert corpus.skipped == {"exact duplicate": [3], "empty source": [4]} and corpus.name == "t"
    assert read_pairs([tmp_path / "t"], languages=("mr", "en")).pairs[0] == Pair("b", "a", 1)
    datasets.Dataset.from_dict({"source": ["a", None], "target": ["b", "c"]}).save_to_disk(tmp_path / "s")
    assert read_pairs([tmp_path / "s"]).skipped == {"'source' is not text": [2]}
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    labelled = datasets.Dataset.from_dict({"text": ["x", "y"], "label": [1, 0]}, features=features)
    labelled.save_to_disk(tmp_path / "l")
    assert read_labelled([tmp_path / "l"]).pairs == [Pair("x", "yes", 1), Pair("y", "no", 2)]
