"""Reading sentence pairs from files: a table, JSON lines or two parallel texts, each also as gzip.

Lines end at \\n, and a CR before it is dropped; U+0085 and U+2028 are text. For training, a line without a
pair is skipped and reported with its reason; for evaluation it is an error. No line is dropped silently.
"""

import codecs
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from regard.text.line_limits import LongLine, ending, raw_lines, why_unreadable
from regard.text.normal import tidy
from regard.text.saved_datasets import is_saved_dataset, open_dataset, records

Row = tuple[str, str] | str  # the two sides of a line, or the reason why it has none

EXPECTED = "expected lines of source TAB target, a .jsonl with source and target, or two parallel text files"
JSON_LINES_SUFFIXES = (".jsonl", ".ndjson", ".json")
LINES_SHOWN = 5


@dataclass(frozen=True)
class Pair:
    """A source and its target, both tidied, and their line number, counted from 1."""

    source: str
    target: str
    line: int


@dataclass(frozen=True)
class RowFormat:
    """What a row and its two sides are called in messages, and the file format that was expected."""

    name: str
    sides: tuple[str, str]
    expected: str


PAIRS = RowFormat("pair", ("source", "target"), EXPECTED)


@dataclass(frozen=True)
class Corpus:
    """The pairs of a file, and the lines that were skipped: every line is one or the other."""

    pairs: list[Pair]
    lines: int
    skipped: dict[str, list[int]]  # reason → the lines skipped for it
    name: str = ""  # the names of the files, without folders

    @cached_property
    def digest(self) -> str:
        """The SHA-256, in hex, of the pairs written as `source TAB target`, each line ended by \\n."""
        sha256 = hashlib.sha256()
        for pair in self.pairs:
            sha256.update(f"{pair.source}\t{pair.target}\n".encode())
        return sha256.hexdigest()

    def report(self) -> list[str]:
        """Return one sentence for each reason: how many lines were skipped, and the first of them."""
        return [f"{_lines(len(each))} skipped, {reason}: {first_lines(each)}" for reason, each in self.skipped.items()]


def read_pairs(paths: Sequence[str | Path], reverse: bool = False, languages: tuple[str, str] | None = None) -> Corpus:
    """Read pairs for training: lines without a pair, or with a duplicate of one, are skipped and counted.

    `languages` are the keys of source and target in a `translation` object of JSON lines; without it, the order in the
    first object decides. `reverse` swaps source and target.
    """
    return corpus_from_rows(rows_of(paths, languages), paths, PAIRS, reverse)


def corpus_from_rows(
    rows: Iterable[Row], paths: Sequence[str | Path], row_format: RowFormat, reverse: bool = False
) -> Corpus:
    """Return the corpus of the rows: those without a pair, or with a duplicate of one, are skipped and counted."""
    pairs: list[Pair] = []
    skipped: dict[str, list[int]] = {}
    seen: set[tuple[str, str]] = set()
    number = 0
    for number, row in enumerate(rows, start=1):
        sides = row if isinstance(row, str) else _tidied(row, reverse)
        reason = sides if isinstance(sides, str) else _objection(sides, seen, row_format)
        if reason:
            skipped.setdefault(reason, []).append(number)
        else:
            seen.add((sides[0], sides[1]))
            pairs.append(Pair(sides[0], sides[1], number))
    if not pairs:
        counts = ", ".join(f"{reason} ({_lines(len(lines))})" for reason, lines in skipped.items())
        raise ValueError(f"no {row_format.name} in {_joined(paths)}: {counts or 'it is empty'}; {row_format.expected}")
    return Corpus(pairs, number, skipped, " + ".join(file.name for file in _files(paths)))


def read_references(
    paths: Sequence[str | Path], reverse: bool = False, languages: tuple[str, str] | None = None
) -> list[Pair]:
    """Read pairs for evaluation: one per line, empty sides and repeats too; a line without two sides is an error."""
    return pairs_from_rows(rows_of(paths, languages), paths, PAIRS, reverse)


def pairs_from_rows(
    rows: Iterable[Row], paths: Sequence[str | Path], row_format: RowFormat, reverse: bool = False
) -> list[Pair]:
    """Return a pair for each row; a row without two sides is an error."""
    pairs: list[Pair] = []
    for number, row in enumerate(rows, start=1):
        if isinstance(row, str):
            raise ValueError(f"{_joined(paths)}, line {number} is no {row_format.name}: {row}; {row_format.expected}")
        pairs.append(Pair(*_tidied(row, reverse), number))
    if not pairs:
        raise ValueError(f"no {row_format.name} in {_joined(paths)}: it is empty; {row_format.expected}")
    return pairs


def read_lines(source: str | Path | Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a text file or of a binary stream, each as soon as it arrives."""
    if isinstance(source, str | Path):
        name, lines = str(source), file_lines(source)
    else:
        name = str(getattr(source, "name", "the stream"))
        lines = _stream_lines(source, name)
    for number, line in enumerate(lines, start=1):
        text = _decoded(line)
        if text is None:
            raise ValueError(f"{name}, line {number} is {why_unreadable(line)}")
        yield text


def rows_of(paths: Sequence[str | Path], languages: tuple[str, str] | None) -> Iterator[Row]:
    """Yield the row of each line; the number and the names of the files decide the format."""
    files = _files(paths)
    if len(files) == 1:
        return _objects(files[0], languages) if has_records(files[0]) else table_rows(files[0])
    if len(files) != 2:
        raise ValueError(f"{len(files)} files of pairs came; expected one, or two parallel text files")
    for file in files:
        if has_records(file) or ending(file) == ".tsv":
            raise ValueError(f"{file} holds pairs by itself; expected it alone, or two parallel text files")
    return _parallel(files[0], files[1])


def table_rows(file: Path) -> Iterator[Row]:
    """Yield the rows of a table of `source TAB target`; further columns are ignored."""
    return map(table_row, file_lines(file))


def table_row(line: bytes) -> Row:
    """Return the row of a line of a table."""
    text = _decoded(line)
    if text is None:
        return why_unreadable(line)
    if "\t" in text:
        source, target, *_ = text.split("\t", maxsplit=2)
        return source, target
    return "no tab: 1 column" if text.strip() else "empty line"


def _objects(file: Path, languages: tuple[str, str] | None) -> Iterator[Row]:
    """Yield the rows of JSON lines; the first `translation` of two languages decides which one is the source."""
    for record in json_objects(file):
        if isinstance(record, str):
            yield record
            continue
        languages = languages or languages_in(record)
        yield fields_row(record, languages)


def languages_in(record: dict[str, Any]) -> tuple[str, str] | None:
    """Return the languages of the object's `translation`, if it has exactly two."""
    translation = record.get("translation")
    if not isinstance(translation, dict) or len(translation) != 2:
        return None
    source, target = translation
    return source, target


def json_objects(file: Path) -> Iterator[dict[str, Any] | str]:
    """Yield the JSON object on each line, or the reason why there is none; or the records of a saved dataset."""
    if is_saved_dataset(file):
        return records(open_dataset(file))
    return map(json_object, file_lines(file))


def has_records(file: Path) -> bool:
    """Return whether the path is JSON lines, by its name, or a saved dataset: both hold records with named fields."""
    return is_json_lines(file) or is_saved_dataset(file)


def is_json_lines(file: Path) -> bool:
    """Return whether the name of the file says that it is JSON lines."""
    return ending(file) in JSON_LINES_SUFFIXES


def json_object(line: bytes) -> dict[str, Any] | str:
    """Return the JSON object of a line, or the reason why there is none."""
    text = _decoded(line)
    if text is None:
        return why_unreadable(line)
    if not text.strip():
        return "empty line"
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):  # RecursionError: a line of ten thousand brackets, say
        return "not JSON"
    return record if isinstance(record, dict) else "not a JSON object"


def fields_row(record: dict[str, Any], languages: tuple[str, str] | None) -> Row:
    """Return the fields `source` and `target`, or the two languages of `translation`."""
    texts, names = record, ("source", "target")
    if not ("source" in record and "target" in record):
        if not isinstance(record.get("translation"), dict):
            return "no source/target field"
        if languages is None:
            return "translation not of 2 languages"
        texts, names = record["translation"], languages
    missing = [name for name in names if name not in texts]
    return f"no {missing[0]!r} in translation" if missing else text_fields(texts, names)


def text_fields(record: dict[str, Any], names: tuple[str, str]) -> Row:
    """Return two fields of a JSON object, or the reason why one of them is not text."""
    for name in names:
        if not isinstance(record[name], str):
            return f"{name!r} is not text"
        if has_lone_surrogate(record[name]):
            return "half a surrogate pair"
    return record[names[0]], record[names[1]]


def has_lone_surrogate(text: str) -> bool:
    """Return whether the text has a lone surrogate, which JSON can express and UTF-8 cannot."""
    return re.search("[\ud800-\udfff]", text) is not None


def _parallel(source: Path, target: Path) -> Iterator[Row]:
    """Yield the rows of two parallel files: line k of both. A TAB is text."""
    counts = [0, 0]
    for lines in zip_longest(file_lines(source), file_lines(target)):
        counts = [count + (line is not None) for count, line in zip(counts, lines, strict=True)]
        yield parallel_row(*lines)
    if counts[0] != counts[1]:
        lengths = f"{source} has {_lines(counts[0])} and {target} has {_lines(counts[1])}"
        raise ValueError(f"{lengths}; expected as many in both")


def parallel_row(source: bytes | None, target: bytes | None) -> Row:
    """Return the row of two lines of parallel files; None: that file has ended."""
    one, other = (_decoded(line or b"") for line in (source, target))
    if one is not None and other is not None:
        return one, other
    return next(why_unreadable(line) for line in (source, target) if line is not None and _decoded(line) is None)


def file_lines(file: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file, which is decompressed if its first bytes are those of gzip."""
    return _stream_lines(raw_lines(file), str(file))


def _stream_lines(stream: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines without \\n, the CR before it, and a byte-order mark at the start."""
    for number, line in enumerate(stream):
        if number == 0 and not isinstance(line, LongLine):
            if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise ValueError(f"{name} is UTF-16; expected UTF-8")
            line = line.removeprefix(codecs.BOM_UTF8)
            if not line:
                return
        if not isinstance(line, LongLine):
            line = line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")
        yield line


def _decoded(line: bytes) -> str | None:
    """Return the line as text; None if it is not UTF-8, or longer than any text (`why_unreadable`)."""
    if isinstance(line, LongLine):
        return None
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _tidied(sides: tuple[str, str], reverse: bool) -> tuple[str, str]:
    source, target = reversed(sides) if reverse else sides
    return tidy(source), tidy(target)


def _objection(sides: tuple[str, str], seen: set[tuple[str, str]], row_format: RowFormat) -> str | None:
    """Return the reason why a pair is not used for training, if there is one."""
    empty = [name for name, side in zip(row_format.sides, sides, strict=True) if not side]
    if empty:
        return f"empty {empty[0]}" if len(empty) == 1 else "empty line"
    return "exact duplicate" if sides in seen else None


def _files(paths: Sequence[str | Path]) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]


def _joined(paths: Sequence[str | Path]) -> str:
    return " + ".join(map(str, _files(paths)))


def _lines(count: int) -> str:
    return f"{count:,} line{'' if count == 1 else 's'}"


def first_lines(lines: Sequence[int]) -> str:
    """Return the first few line numbers."""
    return ", ".join(map(str, lines[:LINES_SHOWN])) + (", …" if len(lines) > LINES_SHOWN else "")
