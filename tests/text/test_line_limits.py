"""Lines without an end are skipped, and never held."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path

import pytest

from regard.text import line_limits
from regard.text.line_limits import MAX_LINE, LongLine, bounded_lines
from regard.text.pairs import read_lines, read_pairs, read_references

LONG = b"x" * (MAX_LINE + 1)
REASON = f"longer than {MAX_LINE >> 20} MiB"


def test_lines_within_the_limit_are_as_they_are() -> None:
    content = b"a\n\nbcd\n" + b"e" * 10 + b"\nlast"
    assert list(bounded_lines(io.BytesIO(content), 10)) == list(io.BytesIO(content))


@pytest.mark.parametrize("size", [11, 12, 25, 100])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_longer_line_has_no_content(size: int, end: bytes) -> None:
    lines = list(bounded_lines(io.BytesIO(b"a\n" + b"x" * size + end), 10))
    assert lines[0] == b"a\n" and isinstance(lines[1], LongLine) and len(lines) == 2
    lines = list(bounded_lines(io.BytesIO(b"x" * size + b"\nb\n"), 10))
    assert isinstance(lines[0], LongLine) and lines[1:] == [b"b\n"]


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl", "a.tsv.gz"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_corpus_skips_it_and_says_so(name: str, place: int, tmp_path: Path) -> None:
    good = (
        [b'{"source": "a", "target": "b"}', b'{"source": "c", "target": "d"}'] if "json" in name else [b"a\tb", b"c\td"]
    )
    content = b"\n".join([*good[:place], LONG, *good[place:]])
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    corpus = read_pairs([tmp_path / name])
    assert [(pair.source, pair.target) for pair in corpus.pairs] == [("a", "b"), ("c", "d")]
    assert corpus.skipped == {REASON: [place + 1]} and corpus.lines == 3
    with pytest.raises(ValueError, match=REASON):
        read_references([tmp_path / name])


def test_two_files_and_lines_of_input(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"a\n" + LONG + b"\nc\n")
    (tmp_path / "t").write_bytes(b"b\nx\nd\n")
    assert read_pairs([tmp_path / "s", tmp_path / "t"]).skipped == {REASON: [2]}
    with pytest.raises(ValueError, match=f"line 2 is {REASON}"):
        list(read_lines(tmp_path / "s"))


def test_a_line_of_compressed_zeros_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = tmp_path / "a.tsv.gz"
    with gzip.open(bomb, "wb", 1) as file:
        for _ in range(200):
            file.write(b"\0" * (1 << 20))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"grows to more than 300 times its size|no pair"):
        read_pairs([bomb])
    assert tracemalloc.get_traced_memory()[1] < 5 * MAX_LINE
    tracemalloc.stop()
    monkeypatch.setattr(line_limits, "MAX_RATIO", 100)
    monkeypatch.setattr(line_limits, "RATIO_FROM", 1 << 20)
    with gzip.open(bomb, "wb", 9) as file:
        file.write(b"a\tb\n" * (1 << 20))
    with pytest.raises(ValueError, match=r"a\.tsv\.gz is no text: as gzip it grows to more than 100 times its size"):
        read_pairs([bomb])
