"""Sentence pairs from files: a table, JSON lines or two parallel texts, each also as gzip.

Lines end at \\n, and a CR before it is dropped; U+0085 and U+2028 are text. For training, a line that gives no pair is
skipped and told with its reason; for evaluation it is an error. No line is lost without a word.
"""

import codecs
import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from regard.text.normal import tidy

Row = tuple[str, str] | str
"""What a line gives: its two sides, or the reason why it has none."""

EXPECTED = "expected lines of source TAB target, a .jsonl with source and target, or two parallel text files"
TABLES = (".tsv",)
JSON_LINES = (".jsonl", ".ndjson", ".json")
LINES_SHOWN = 5


@dataclass(frozen=True)
class Pair:
    """A source and its target, both tidied, and the line they stand on, counted from 1."""

    source: str
    target: str
    line: int


@dataclass(frozen=True)
class Form:
    """What the two sides of a line are called, and how a file of them should look."""

    whole: str
    sides: tuple[str, str]
    expected: str


PAIRS = Form("pair", ("source", "target"), EXPECTED)


@dataclass(frozen=True)
class Corpus:
    """The pairs of a file, and the lines that gave none: every line is one or the other."""

    pairs: list[Pair]
    lines: int
    skipped: dict[str, list[int]]
    """reason → the lines skipped for it"""
    name: str = ""
    """the names of the files, without folders"""

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of the pairs written as `source TAB target`, each line ended by \\n."""
        total = hashlib.sha256()
        for pair in self.pairs:
            total.update(f"{pair.source}\t{pair.target}\n".encode())
        return total.hexdigest()

    def report(self) -> list[str]:
        """One sentence for each reason: how many lines were skipped, and the first of them."""
        return [_told_reason(reason, lines) for reason, lines in self.skipped.items()]


def read_pairs(paths: Sequence[str | Path], reverse: bool = False, languages: tuple[str, str] | None = None) -> Corpus:
    """Pairs for training: lines without a pair, or with one that was there before, are skipped and counted.

    `languages` names source and target in a `translation` object of JSON lines; without it, the first object's order
    counts. `reverse` turns every pair round.
    """
    return collected(rows_of(paths, languages), paths, PAIRS, reverse)


def collected(rows: Iterable[Row], paths: Sequence[str | Path], form: Form, reverse: bool = False) -> Corpus:
    """The corpus of the rows: what gives no pair, or one that was there before, is skipped and counted."""
    pairs: list[Pair] = []
    skipped: dict[str, list[int]] = {}
    seen: set[tuple[str, str]] = set()
    number = 0
    for number, row in enumerate(rows, start=1):
        sides = row if isinstance(row, str) else _tidied(row, reverse)
        reason = sides if isinstance(sides, str) else _objection(sides, seen, form)
        if reason:
            skipped.setdefault(reason, []).append(number)
        else:
            seen.add((sides[0], sides[1]))
            pairs.append(Pair(sides[0], sides[1], number))
    if not pairs:
        counts = ", ".join(f"{reason} ({_lines(len(lines))})" for reason, lines in skipped.items())
        raise ValueError(f"no {form.whole} in {_told_paths(paths)}: {counts or 'it is empty'}; {form.expected}")
    return Corpus(pairs, number, skipped, " + ".join(file.name for file in _files(paths)))


def read_references(
    paths: Sequence[str | Path], reverse: bool = False, languages: tuple[str, str] | None = None
) -> list[Pair]:
    """Pairs for evaluation: one for each line, empty sides and repeats too; a line without two sides is an error."""
    return every_one(rows_of(paths, languages), paths, PAIRS, reverse)


def every_one(rows: Iterable[Row], paths: Sequence[str | Path], form: Form, reverse: bool = False) -> list[Pair]:
    """A pair for each row; one without two sides is an error."""
    pairs: list[Pair] = []
    for number, row in enumerate(rows, start=1):
        if isinstance(row, str):
            raise ValueError(f"{_told_paths(paths)}, line {number} is no {form.whole}: {row}; {form.expected}")
        pairs.append(Pair(*_tidied(row, reverse), number))
    if not pairs:
        raise ValueError(f"no {form.whole} in {_told_paths(paths)}: it is empty; {form.expected}")
    return pairs


def read_lines(source: str | Path | Iterable[bytes]) -> Iterator[str]:
    """The lines of a text file or of a binary stream, each as soon as it is there."""
    if isinstance(source, str | Path):
        name, lines = str(source), _file_lines(source)
    else:
        name = str(getattr(source, "name", "the stream"))
        lines = _stream_lines(source, name)
    for number, line in enumerate(lines, start=1):
        text = _decoded(line)
        if text is None:
            raise ValueError(f"{name}, line {number} is not UTF-8")
        yield text


def rows_of(paths: Sequence[str | Path], languages: tuple[str, str] | None) -> Iterator[Row]:
    """What each line gives, in the format that number and names of the files tell."""
    files = _files(paths)
    kinds = [_kind(file) for file in files]
    if len(files) == 1:
        return _objects(files[0], languages) if kinds[0] in JSON_LINES else table_rows(files[0])
    if len(files) != 2:
        raise ValueError(f"{len(files)} files of pairs came; expected one, or two parallel text files")
    for file, kind in zip(files, kinds, strict=True):
        if kind in TABLES + JSON_LINES:
            raise ValueError(f"{file} holds pairs by itself; expected it alone, or two parallel text files")
    return _parallel(files[0], files[1])


def table_rows(file: Path) -> Iterator[Row]:
    """`source TAB target`, further columns ignored."""
    for line in _file_lines(file):
        text = _decoded(line)
        if text is None:
            yield "not UTF-8"
        elif "\t" in text:
            source, target = text.split("\t", maxsplit=2)[:2]
            yield source, target
        else:
            yield "no tab: 1 column" if text.strip() else "empty line"


def _objects(file: Path, languages: tuple[str, str] | None) -> Iterator[Row]:
    """One JSON object a line; the first `translation` of two languages says which is the source."""
    for found in json_objects(file):
        if isinstance(found, str):
            yield found
            continue
        translation = found.get("translation")
        if languages is None and isinstance(translation, dict) and len(translation) == 2:
            source, target = translation
            languages = source, target
        yield _fields(found, languages)


def json_objects(file: Path) -> Iterator[dict[str, Any] | str]:
    """The object on each line, or the reason why there is none."""
    return map(_json_object, _file_lines(file))


def is_json_lines(file: Path) -> bool:
    """By its name."""
    return _kind(file) in JSON_LINES


def _json_object(line: bytes) -> dict[str, Any] | str:
    text = _decoded(line)
    if text is None:
        return "not UTF-8"
    if not text.strip():
        return "empty line"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # a line of ten thousand brackets is no JSON to us either
        return "not JSON"
    return found if isinstance(found, dict) else "not a JSON object"


def _fields(found: dict[str, Any], languages: tuple[str, str] | None) -> Row:
    """`source` and `target`, or the two languages of `translation`."""
    holder, names = found, ("source", "target")
    if not ("source" in found and "target" in found):
        if not isinstance(found.get("translation"), dict):
            return "no source/target field"
        if languages is None:
            return "translation not of 2 languages"
        holder, names = found["translation"], languages
    for name in names:
        if not isinstance(holder.get(name), str):
            return f"{name!r} is not text" if name in holder else f"no {name!r} in translation"
        if broken(holder[name]):
            return "half a surrogate pair"
    return holder[names[0]], holder[names[1]]


def broken(text: str) -> bool:
    """JSON can spell half a character, which no text file can hold."""
    return re.search("[\ud800-\udfff]", text) is not None


def _parallel(source: Path, target: Path) -> Iterator[Row]:
    """Line k of both files; a TAB is text."""
    counts = [0, 0]
    for lines in zip_longest(_file_lines(source), _file_lines(target)):
        counts = [count + (line is not None) for count, line in zip(counts, lines, strict=True)]
        one, other = (_decoded(line or b"") for line in lines)
        yield "not UTF-8" if one is None or other is None else (one, other)
    if counts[0] != counts[1]:
        told = f"{source} has {_lines(counts[0])} and {target} has {_lines(counts[1])}"
        raise ValueError(f"{told}; expected as many in both")


def _file_lines(file: str | Path) -> Iterator[bytes]:
    """The lines of a file, unpacked where its first bytes say gzip."""
    try:
        with open(file, "rb") as stream:
            packed = stream.peek(2)[:2] == b"\x1f\x8b"
            if str(file).lower().endswith(".gz") and not packed:
                raise ValueError(f"{file} is named .gz, but is not gzip")
            yield from _stream_lines(gzip.GzipFile(fileobj=stream) if packed else stream, str(file))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{file} is damaged gzip: {error}") from None
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror or error}") from None


def _stream_lines(stream: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Lines without \\n, the CR before it, and a byte-order mark at the start."""
    for number, line in enumerate(stream):
        if number == 0:
            if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise ValueError(f"{name} is UTF-16; expected UTF-8")
            line = line.removeprefix(codecs.BOM_UTF8)
            if not line:
                return
        yield line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _tidied(sides: tuple[str, str], reverse: bool) -> tuple[str, str]:
    source, target = reversed(sides) if reverse else sides
    return tidy(source), tidy(target)


def _objection(sides: tuple[str, str], seen: set[tuple[str, str]], form: Form) -> str | None:
    """Why a pair is not trained on."""
    source, target = sides
    if not source or not target:
        return f"empty {form.sides[1]}" if source else f"empty {form.sides[0]}" if target else "empty line"
    return "exact duplicate" if sides in seen else None


def _files(paths: Sequence[str | Path]) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]


def _told_paths(paths: Sequence[str | Path]) -> str:
    return " + ".join(map(str, _files(paths)))


def _kind(file: Path) -> str:
    """The ending that tells the format: the one before .gz."""
    return Path(file.stem if file.suffix.lower() == ".gz" else file.name).suffix.lower()


def _lines(count: int) -> str:
    return f"{count:,} line{'' if count == 1 else 's'}"


def _told_reason(reason: str, lines: list[int]) -> str:
    first = ", ".join(map(str, lines[:LINES_SHOWN])) + (", …" if len(lines) > LINES_SHOWN else "")
    return f"{_lines(len(lines))} skipped, {reason}: {first}"
