"""The folder of a sharded translation.

    manifest.json                the input, the models and the options (manifest.py)
    source/0000/0000012.gz       the lines of shard 12; a shard is a run of lines of the input
    cut.json                     the number of shards and lines; not there before the whole input is cut
    target/0000/0000012.txt      their translations: the shard is done
    notices/0000/0000012.tsv     line number TAB notice, if there are any
    failed/0000/0000012.json     why the shard was given up; not there otherwise
    claims/                      which process works on which shard (claims.py)

Every file is written under a new name and then renamed: what is there is whole. Shards are in groups of 1,000, so that
no folder grows large, and a group is listed at once.
"""

from __future__ import annotations

import gzip
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from regard.batch.claims import remove_claims

GROUP = 1000  # shards in a folder
MANIFEST, CUT = "manifest.json", "cut.json"
SOURCE, TARGET, NOTICES, FAILED, CLAIMS = "source", "target", "notices", "failed", "claims"
NAMES = (MANIFEST, CUT, SOURCE, TARGET, NOTICES, FAILED, CLAIMS)


@dataclass(frozen=True)
class CutSize:
    """The size of an input that is cut."""

    shards: int
    lines: int


@dataclass(frozen=True)
class ShardFolder:
    """The files of a sharded translation."""

    root: Path

    @property
    def claims(self) -> Path:
        return self.root / CLAIMS

    def target(self, shard: int) -> Path:
        return self.root / TARGET / f"{shard_name(shard)}.txt"

    def notices(self, shard: int) -> Path:
        return self.root / NOTICES / f"{shard_name(shard)}.tsv"

    def _source(self, shard: int) -> Path:
        return self.root / SOURCE / f"{shard_name(shard)}.gz"

    def _failure(self, shard: int) -> Path:
        return self.root / FAILED / f"{shard_name(shard)}.json"

    # Sources

    def has_source(self, shard: int) -> bool:
        return self._source(shard).exists()

    def write_source(self, shard: int, lines: list[str]) -> None:
        text = "".join(f"{line}\n" for line in lines)
        put(self._source(shard), gzip.compress(text.encode(), compresslevel=1, mtime=0))

    def read_source(self, shard: int) -> list[str]:
        return gzip.decompress(self._source(shard).read_bytes()).decode().split("\n")[:-1]

    def cut_size(self) -> CutSize | None:
        """Return the number of shards and lines; None: the input is not cut yet."""
        try:
            return CutSize(**json.loads((self.root / CUT).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def write_cut_size(self, size: CutSize) -> None:
        put(self.root / CUT, json.dumps({"shards": size.shards, "lines": size.lines}).encode())

    # Targets and failures

    def is_done(self, shard: int) -> bool:
        return self.target(shard).exists()

    def has_ended(self, shard: int) -> bool:
        return self.is_done(shard) or self._failure(shard).exists()

    def write_target(self, shard: int, lines: list[str], notices: list[tuple[int, str]]) -> None:
        """Put the translations of a shard in place; notices come first, because the target says that all is there."""
        if notices:
            put(self.notices(shard), "".join(f"{line}\t{notice}\n" for line, notice in notices).encode())
        put(self.target(shard), "".join(f"{line}\n" for line in lines).encode())

    def write_failure(self, shard: int, reason: str) -> None:
        put(self._failure(shard), json.dumps({"reason": reason}, ensure_ascii=False).encode())

    def failures(self) -> dict[int, str]:
        """Return the shards that were given up, with the reasons."""
        shards = [shard for group in self._groups(FAILED) for shard in self._listed(FAILED, group)]
        return {
            shard: json.loads(self._failure(shard).read_text(encoding="utf-8"))["reason"] for shard in sorted(shards)
        }

    def forget_failures(self) -> None:
        """Let shards that were given up be attempted anew."""
        for shard in self.failures():
            remove_claims(self.claims, shard_name(shard))
            self._failure(shard).unlink(missing_ok=True)

    def remove_leftovers(self, shard: int) -> None:
        """Remove what processes that were killed left of a shard that is done."""
        for path in (self.target(shard), self.notices(shard)):
            for leftover in path.parent.glob(f"{path.name}.*.new"):
                leftover.unlink(missing_ok=True)

    # Many shards at once

    def cut_in_group(self, group: int) -> set[int]:
        return self._listed(SOURCE, group)

    def done_in_group(self, group: int) -> set[int]:
        return self._listed(TARGET, group)

    def failed_in_group(self, group: int) -> set[int]:
        return self._listed(FAILED, group)

    def _groups(self, kind: str) -> list[int]:
        folder = self.root / kind
        return sorted(int(path.name) for path in folder.iterdir()) if folder.is_dir() else []

    def _listed(self, kind: str, group: int) -> set[int]:
        """Return the shards of a group that have a file of that kind."""
        try:
            names = os.listdir(self.root / kind / f"{group:04}")
        except FileNotFoundError:
            return set()
        return {int(name.partition(".")[0]) for name in names if not name.endswith(".new")}


class Tally:
    """Counts the shards that are done, of all machines; groups that are complete are listed only once."""

    def __init__(self, folder: ShardFolder) -> None:
        self._folder = folder
        self._counts: list[int] = []  # done in the groups that are complete

    def done(self) -> int:
        """Return the number of shards that are done."""
        open_groups = 0
        for group in self._open_groups():
            done = len(self._folder.done_in_group(group))
            if done == GROUP and group == len(self._counts):
                self._counts.append(done)
            else:
                open_groups += done
        return sum(self._counts) + open_groups

    def _open_groups(self) -> Iterator[int]:
        group = len(self._counts)
        while (self._folder.root / SOURCE / f"{group:04}").is_dir():
            yield group
            group += 1


def shard_name(shard: int) -> str:
    """Return the name of a shard's files, without their suffix: group/number."""
    return f"{shard // GROUP:04}/{shard:07}"


def put(path: Path, content: bytes) -> None:
    """Write a file under a new name and rename it: a reader sees the whole content or none, whoever else writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}.new")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
