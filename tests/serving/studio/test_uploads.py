"""Files of requests: safe names, limits, and messages that name files as they were sent."""

from __future__ import annotations

import asyncio
import gzip
import io
from pathlib import Path

import pytest
from fastapi import UploadFile

from regard.serving.studio.uploads import read_uploaded_labels, read_uploaded_pairs, safe_name, save_uploads


def upload(name: str | None, content: bytes) -> UploadFile:
    return UploadFile(io.BytesIO(content), filename=name)


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("pairs.tsv", "pairs.tsv"),
        ("../../etc/passwd", "passwd"),
        ("C:\\data\\my pairs.tsv", "my_pairs.tsv"),
        (".hidden", "hidden"),
        ("..", "file"),
        ("", "file"),
        (None, "file"),
        ("गोष्टी.jsonl", "_.jsonl"),
        ("a" * 300 + ".tsv.gz", "a" * 73 + ".tsv.gz"),
        ("a\x00b\n.tsv", "a_b_.tsv"),
    ],
)
def test_safe_name(given: str | None, safe: str) -> None:
    assert safe_name(given) == safe


def test_equal_names_are_told_apart(tmp_path: Path) -> None:
    paths = asyncio.run(save_uploads([upload("x/text", b"a\n"), upload("y/text", b"b\n")], tmp_path))
    assert [(path.name, path.read_bytes()) for path in paths] == [("1-text", b"a\n"), ("2-text", b"b\n")]
    with pytest.raises(ValueError, match="expected one, or two parallel texts, got 3"):
        asyncio.run(save_uploads([upload("a", b"")] * 3, tmp_path))


def test_pairs_are_read_as_evaluate_reads_them() -> None:
    files = [upload("dev.tsv.gz", gzip.compress("One.\tएक.\nTwo.\tदोन.\n".encode()))]
    pairs = asyncio.run(read_uploaded_pairs(files, 2))
    assert [(pair.source, pair.target, pair.line) for pair in pairs] == [("One.", "एक.", 1), ("Two.", "दोन.", 2)]
    parallel = [upload("a.en", b"One.\n"), upload("a.mr", "एक.\n".encode())]
    (pair,) = asyncio.run(read_uploaded_pairs(parallel, 2, reverse=True))
    assert (pair.source, pair.target) == ("एक.", "One.")


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"^dev\.tsv: expected at most 2 lines, got more$"):
        asyncio.run(read_uploaded_pairs([upload("dev.tsv", b"a\tb\n" * 3)], 2))
    with pytest.raises(ValueError, match=r"^dev\.tsv, line 2 is no pair: no tab"):
        asyncio.run(read_uploaded_pairs([upload("dev.tsv", b"a\tb\nc\n")], 9))
    with pytest.raises(ValueError, match=r"^dev\.tsv is UTF-16; expected UTF-8$"):
        asyncio.run(read_uploaded_pairs([upload("dev.tsv", "a\tb\n".encode("utf-16"))], 9))
    with pytest.raises(ValueError, match=r"^labels\.jsonl, line 1 is no labelled text: no label field"):
        asyncio.run(read_uploaded_labels([upload("labels.jsonl", b'{"text": "a"}\n')], 9))
