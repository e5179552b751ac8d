"""Blocks of lines of a corpus, which worker processes turn into tidied pairs with their hashes.

The main process only reads lines; what is done with each of them is done by the workers (worker.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from regard.corpora.arrays import spans
from regard.corpora.workers import Message
from regard.text.line_limits import LongLine
from regard.text.normal import match_key, tidy
from regard.text.pairs import (
    PAIRS,
    Row,
    fields_row,
    file_lines,
    has_records,
    json_object,
    languages_in,
    parallel_row,
    rows_of,
    table_row,
)
from regard.text.saved_datasets import is_saved_dataset, open_dataset, records

BLOCK_LINES, BLOCK_RECORDS = 5_000, 50_000  # of text files and of saved datasets, which workers open for each block
LINES_SHOWN = 5  # line numbers that are reported for a reason
READ = "read"  # the job of a worker that reads a block


@dataclass(frozen=True)
class SourceFiles:
    """Files of pairs, and how they are read."""

    files: tuple[Path, ...]
    reverse: bool = False
    languages: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """the names of the files, without folders"""
        return " + ".join(file.name for file in self.files)

    @property
    def kind(self) -> str:
        if len(self.files) == 2:
            return "parallel"
        return "dataset" if is_saved_dataset(self.files[0]) else "json" if has_records(self.files[0]) else "table"

    def resolved(self) -> SourceFiles:
        """Return the source with the languages of its `translation` records, which the first of them decides; raise a
        ValueError if the files are not of one format."""
        rows_of(self.files, self.languages)  # checks the number and the names of the files
        if self.languages is not None or self.kind not in ("json", "dataset"):
            return self
        record = next((each for each in self._translations() if languages_in(each)), {})
        return SourceFiles(self.files, self.reverse, languages_in(record))

    def _translations(self) -> Iterator[dict[str, Any]]:
        """Yield the records that may have a `translation`."""
        if self.kind == "dataset":
            dataset = open_dataset(self.files[0])
            yield from records(dataset) if "translation" in dataset.features else ()
            return
        for line in file_lines(self.files[0]):
            if b"translation" in line or b"\\u00" in line:  # also if its letters are written as escapes
                record = json_object(line)
                if not isinstance(record, str):
                    yield record

    def blocks(self) -> Iterator[tuple[int, Message]]:
        """Yield the blocks in order, each with the number of its lines and as a worker's job."""
        first = 1
        for lines, parts, more in self._parts():
            yield lines, Message({"job": READ, "first": first, "how": asdict(self), "kind": self.kind, **more}, parts)
            first += lines

    def _parts(self) -> Iterator[tuple[int, list[bytes], dict[str, Any]]]:
        if self.kind == "dataset":
            size = len(open_dataset(self.files[0]))
            for records_span in spans(size, BLOCK_RECORDS):
                first, last = records_span.start, records_span.stop
                yield last - first, [], {"records": [first, last]}
            return
        streams, counts = [file_lines(file) for file in self.files], [0] * len(self.files)
        while True:
            blocks = [list(islice(stream, BLOCK_LINES)) for stream in streams]
            counts = [count + len(block) for count, block in zip(counts, blocks, strict=True)]
            if not any(blocks):
                break
            long = [[place for place, line in enumerate(each) if isinstance(line, LongLine)] for each in blocks]
            facts = {"lines": list(map(len, blocks)), "long": long}
            yield max(map(len, blocks)), [b"\n".join(block) for block in blocks], facts
        if len(set(counts)) > 1:
            sizes = " and ".join(f"{file} has {n:,} lines" for file, n in zip(self.files, counts, strict=True))
            raise ValueError(f"{sizes}; expected as many in both")


@dataclass
class TextBlock:
    """The pairs of a block, ready to be stored."""

    sources: list[bytes] = field(default_factory=list)
    targets: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)  # a hash of source and target
    ranks: list[bytes] = field(default_factory=list)  # the hash of the source's `match_key` that ranks it for dev
    characters: list[int] = field(default_factory=list)  # of the longer side
    lines: list[int] = field(default_factory=list)
    skipped: dict[str, list[int]] = field(default_factory=dict)  # reason → count, then the first lines

    @classmethod
    def of(cls, rows: Iterable[Row], first: int, reverse: bool) -> TextBlock:
        """Return the pairs of the rows, whose first line has the number `first`."""
        block = cls()
        for number, row in enumerate(rows, start=first):
            if isinstance(row, str):
                block._skip(row, number)
                continue
            source, target = tidy(row[reverse]), tidy(row[not reverse])
            if source and target:
                block._add(source, target, number)
            else:
                empty = [name for name, side in zip(PAIRS.sides, (source, target), strict=True) if not side]
                block._skip(f"empty {empty[0]}" if len(empty) == 1 else "empty line", number)
        return block

    def _add(self, source: str, target: str, line: int) -> None:
        source_bytes, target_bytes = source.encode(), target.encode()
        self.sources.append(source_bytes)
        self.targets.append(target_bytes)
        self.keys.append(pair_key(source_bytes, target_bytes))
        self.ranks.append(source_rank(source))
        self.characters.append(max(len(source), len(target)))
        self.lines.append(line)

    def _skip(self, reason: str, line: int) -> None:
        noted = self.skipped.setdefault(reason, [0])
        noted[0] += 1
        if len(noted) <= LINES_SHOWN:
            noted.append(line)

    def message(self) -> Message:
        """Return the block as a worker's answer."""
        numbers = [np.array(values, np.int64) for values in (self.characters, self.lines)]
        parts = []
        for side in (self.sources, self.targets):
            parts += [b"".join([b"%b\n" % text for text in side]), np.array([len(text) + 1 for text in side], np.int64)]
        hashes = [np.frombuffer(b"".join(each), ">u8").astype(np.uint64) for each in (self.keys, self.ranks)]
        return Message({"skipped": self.skipped}, [bytes(part) for part in (*parts, *hashes, *numbers)])


def pair_key(source: bytes, target: bytes) -> bytes:
    """Return the 8 bytes of a hash by which equal pairs are recognized."""
    return blake2b(b"%b\t%b" % (source, target), digest_size=8).digest()


def source_rank(source: str) -> bytes:
    """Return the first 8 bytes of the hash by which sources are ranked to choose dev (text/split.py)."""
    return blake2b(match_key(source).encode(), digest_size=16).digest()[:8]


def read_block(job: Message) -> Message:
    """Read a block: what a worker does with the jobs of `SourceFiles.blocks`."""
    how, first = job.header["how"], job.header["first"]
    return TextBlock.of(_rows(job), first, how["reverse"]).message()


def _rows(job: Message) -> Iterable[Row]:
    how, kind = job.header["how"], job.header["kind"]
    languages = tuple(how["languages"]) if how["languages"] else None
    if kind == "dataset":
        dataset = open_dataset(Path(how["files"][0]))
        return (fields_row(record, languages) for record in records(dataset, *job.header["records"]))
    sides = [_lines(*each) for each in zip(job.parts, job.header["lines"], job.header["long"], strict=True)]
    if kind == "parallel":
        return (parallel_row(*pair) for pair in zip_longest(*sides))
    if kind == "table":
        return map(table_row, sides[0])
    objects = map(json_object, sides[0])
    return (each if isinstance(each, str) else fields_row(each, languages) for each in objects)


def _lines(part: bytes, count: int, long: Sequence[int]) -> Sequence[bytes]:
    lines = part.split(b"\n") if count else []
    for place in long:
        lines[place] = LongLine()
    return lines


def merged_skipped(into: dict[str, list[int]], block: dict[str, list[int]]) -> None:
    """Add the skipped lines of a later block."""
    for reason, (count, *lines) in block.items():
        noted = into.setdefault(reason, [0])
        noted[0] += count
        noted += lines[: max(0, LINES_SHOWN + 1 - len(noted))]


def skipped_report(skipped: dict[str, list[int]]) -> list[str]:
    """Return one sentence for each reason: how many lines were skipped, and the first of them."""
    sentences = []
    for reason, (count, *lines) in skipped.items():
        more = ", …" if count > len(lines) else ""
        plural = "" if count == 1 else "s"
        sentences.append(f"{count:,} line{plural} skipped, {reason}: {', '.join(map(str, lines))}{more}")
    return sentences
