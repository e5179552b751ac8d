"""Reading labelled texts: as pairs are read, and nothing but text and label."""

import gzip
import json
from pathlib import Path

import pytest

from regard.text.labelled import read_gold, read_labelled


def written(path: Path, data: str) -> Path:
    path.write_bytes(gzip.compress(data.encode()) if path.suffix == ".gz" else data.encode())
    return path


def result(path: Path) -> list[tuple[str, str, int]]:
    return [(pair.source, pair.target, pair.line) for pair in read_labelled([path]).pairs]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_table(tmp_path: Path, ending: str) -> None:
    path = written(
        tmp_path / f"a.tsv{ending}", "good\u00a0 film\tpositive\tmore\r\nnone\n\tx\nbad\t\ngood film\tpositive\n"
    )
    assert result(path) == [("good film", "positive", 1)]
    report = "\n".join(read_labelled([path]).report())
    for reason in ("no tab: 1 column: 2", "empty text: 3", "empty label: 4", "exact duplicate: 5"):
        assert reason in report


def test_json_lines_give_text_and_label_and_nothing_else(tmp_path: Path) -> None:
    rows = [
        {"text": "a\u0085b", "label": "yes", "rating": 9, "source": "s", "target": "t"},
        {"text": "c", "label": 3},
        {"text": "d", "label": True},
        {"text": "e", "rating": 1},
        {"label": "yes"},
        {"text": None, "label": "yes"},
    ]
    path = written(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert result(path) == [("a b", "yes", 1), ("c", "3", 2)]
    report = "\n".join(read_labelled([path]).report())
    for reason in ("'label' is not text: 3", "no label field: 4", "no text field: 5", "'text' is not text: 6"):
        assert reason in report


def test_the_same_text_may_have_two_labels(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "x\ta\nx\tb\nx\ta\n")
    assert [label for _, label, _ in result(path)] == ["a", "b"]


def test_gold_drops_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "x\ta\n\ta\nx\ta\n")
    assert [(pair.source, pair.target) for pair in read_gold([path])] == [("x", "a"), ("", "a"), ("x", "a")]
    with pytest.raises(ValueError, match="line 1 is no labelled text: no tab"):
        read_gold([written(tmp_path / "b.tsv", "x\n")])


def test_one_file_with_something_in_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "")
    with pytest.raises(ValueError, match="it is empty; expected lines of text TAB label"):
        read_labelled([path])
    with pytest.raises(ValueError, match="2 files of labelled texts came; expected one"):
        read_labelled([path, path])
