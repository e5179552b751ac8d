"""The texts of a corpus in memory-mapped files: tidied pairs, with hashes by which duplicates and dev are determined.

source, target        UTF-8, a text per line; *.ends: where each line ends
keys [N]              a hash of source and target
ranks [N]             the hash of the source that ranks it for dev (text/split.py)
characters [N]        the length of the longer side
lines [N]             the line of the file
repeated [N]          1 for an exact duplicate of an earlier pair
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from regard.corpora.arrays import Ints, Ragged, RaggedWriter, mapped, spans
from regard.corpora.blocks import SourceFiles, merged_skipped
from regard.corpora.cache import Cache, digest_of, read_manifest, write_manifest
from regard.corpora.workers import Workers
from regard.text.pairs import EXPECTED, Pair
from regard.text.saved_datasets import dataset_files, is_saved_dataset

Advance = Callable[[int, int | None, str], None]  # shows how much is done, of how much, and what it is
Flags = NDArray[np.uint8]
Hashes = NDArray[np.uint64]

ARRAYS: dict[str, DTypeLike] = {"keys": np.uint64, "ranks": np.uint64, "characters": np.int64, "lines": np.int64}
BUCKET_ROWS = 1 << 22  # hashes that are sorted at a time
SPACE_FACTOR = 3  # bytes of texts and tokens on disk, per byte of text that is read
GZIP_FACTOR = 4  # how much smaller gzip makes a text


@dataclass(frozen=True)
class StoredTexts:
    """The pairs of one source of data."""

    folder: Path
    name: str
    digest: str  # SHA-256 of the files
    line_count: int
    skipped: dict[str, list[int]]  # reason → count, then the first lines
    source: Ragged
    target: Ragged
    keys: Hashes
    ranks: Hashes
    characters: Ints
    lines: Ints
    repeated: Flags

    def __len__(self) -> int:
        return len(self.keys)

    def pair(self, row: int) -> Pair:
        """Return the pair of a row."""
        source, target = (side[row][:-1].tobytes().decode() for side in (self.source, self.target))
        return Pair(source, target, int(self.lines[row]))

    @classmethod
    def open(cls, entry: Path) -> StoredTexts:
        """Map the texts of an entry of the cache."""
        facts = read_manifest(entry)
        try:
            sides = [Ragged.open(entry, side, np.uint8) for side in ("source", "target")]
            dtypes = ARRAYS | {"repeated": np.uint8}
            arrays: dict[str, Any] = {name: mapped(entry / name, dtype) for name, dtype in dtypes.items()}
            known = facts["name"], facts["digest"], facts["lines"], facts["skipped"]
            texts = cls(entry, *known, sides[0], sides[1], **arrays)
            complete = all(len(each) == facts["pairs"] for each in (*sides, *arrays.values()))
        except (OSError, KeyError, ValueError):
            complete = False
        if not complete:
            raise ValueError(f"{entry}: damaged; delete it, and it will be made again")
        return texts


def text_bytes(files: Sequence[Path]) -> int:
    """Return about how many bytes of text the files hold."""
    return sum(_size(file) for path in files for file in _data_files(path))


def _data_files(path: Path) -> list[Path]:
    return dataset_files(path) if is_saved_dataset(path) else [path]


def _size(file: Path) -> int:
    if not file.is_file():  # a pipe, say, whose bytes are gone once they are read
        return 0
    try:
        with file.open("rb") as stream:
            compressed = stream.read(2) == b"\x1f\x8b"
        return file.stat().st_size * (GZIP_FACTOR if compressed else 1)
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror or error}") from None


def store_texts(given: SourceFiles, cache: Cache, advance: Advance) -> StoredTexts:
    """Return the texts of the files: from the cache if they are there, otherwise read once by all cores."""
    source = given.resolved()
    digest = digest_of([file for path in source.files for file in _data_files(path)])
    entry = cache.entry("texts", digest, source.kind, source.reverse, source.languages)
    if not cache.has(entry):
        cache.check_space(SPACE_FACTOR * text_bytes(source.files))
        with cache.building(entry) as folder, Workers() as workers:
            _write_texts(source, digest, folder, workers, advance)
    return StoredTexts.open(entry)


def _write_texts(source: SourceFiles, digest: str, folder: Path, workers: Workers, advance: Advance) -> None:
    """Read the files into an entry."""
    total, done, skipped = text_bytes(source.files), 0, {}  # type: int, int, dict[str, list[int]]
    sides = [RaggedWriter(folder, side) for side in ("source", "target")]
    arrays = {name: (folder / name).open("wb") for name in ARRAYS}
    counts: list[int] = []
    advance(0, None, f"reading {source.name}")

    def jobs() -> Any:
        for count, job in source.blocks():
            counts.append(count)
            yield job

    for number, answer in enumerate(workers.map(jobs())):
        texts, numbers = answer.parts[:4], answer.parts[4:]
        for side, values, lengths in zip(sides, texts[::2], texts[1::2], strict=True):
            side.append(values, np.frombuffer(lengths, np.int64))
        for file, values in zip(arrays.values(), numbers, strict=True):
            file.write(values)
        merged_skipped(skipped, answer.header["skipped"])
        done += counts[number]
        share = min(1.0, sum(side.size for side in sides) / max(1, total))
        advance(done, max(done, round(done / share)) if share else None, f"reading {source.name}")
    for side in sides:
        side.close()
    for file in arrays.values():
        file.close()
    pairs = (folder / "keys").stat().st_size // 8
    if not pairs:
        reasons = ", ".join(f"{reason} ({count:,} lines)" for reason, (count, *_) in skipped.items())
        paths = " + ".join(map(str, source.files))
        raise ValueError(f"no pair in {paths}: {reasons or 'it is empty'}; {EXPECTED}")
    _mark_repeated(folder, pairs)
    facts = {"name": source.name, "digest": digest, "lines": done, "pairs": pairs, "skipped": skipped}
    write_manifest(folder, facts)


def _mark_repeated(folder: Path, pairs: int) -> None:
    repeated = np.memmap(folder / "repeated", np.uint8, mode="w+", shape=(pairs,))
    drop_repeated([mapped(folder / "keys", np.uint64)], [repeated])
    repeated.flush()


def drop_repeated(keys: Sequence[Hashes], dropped: Sequence[Flags]) -> None:
    """Set `dropped` where a key has occurred before, in this part or in an earlier one; rows that are dropped already
    count for nothing.

    The keys are sorted in buckets by their first bits, so that the memory for it is bounded.
    """
    total = sum(map(len, keys))
    bits = max(0, (total // BUCKET_ROWS).bit_length())
    for bucket in range(1 << bits):
        parts, rows, values = [], [], []  # type: list[Ints], list[Ints], list[Hashes]
        for part, (part_keys, part_dropped) in enumerate(zip(keys, dropped, strict=True)):
            for span in spans(len(part_keys)):
                inside = part_dropped[span] == 0
                if bits:
                    inside &= part_keys[span] >> np.uint64(64 - bits) == bucket
                chosen = np.flatnonzero(inside) + span.start
                rows.append(chosen)
                values.append(part_keys[chosen])
                parts.append(np.full(len(chosen), part))
        order, all_values = _sorted(values)
        again = order[1:][all_values[1:] == all_values[:-1]]
        all_rows, all_parts = np.concatenate(rows), np.concatenate(parts)
        for part, part_dropped in enumerate(dropped):
            part_dropped[all_rows[again[all_parts[again] == part]]] = 1


def _sorted(values: Sequence[Hashes]) -> tuple[Ints, Hashes]:
    """Return the order that sorts the values, equal ones as they come, and the sorted values."""
    joined = np.concatenate(values)
    order = np.argsort(joined, kind="stable")
    return order, joined[order]
