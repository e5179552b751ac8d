"""Cutting the input into shards, in one pass: a .gz file cannot be read from the middle.

One process cuts, by a claim as for shards; the others work on what is cut already. If it dies, another takes over,
reads the input from its beginning again, and writes only the shards that are not there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from regard.batch.claims import HEARTBEAT_SECONDS, Claim, Claims, Exhausted
from regard.batch.folder import CutSize, ShardFolder
from regard.text.pairs import read_lines

CLAIM = "cut"


class Cutter:
    """Cuts the input if no other process does; to be called again and again until `done`."""

    def __init__(self, folder: ShardFolder, file: Path, shard_lines: int) -> None:
        self._folder, self._file, self._shard_lines = folder, file, shard_lines
        self._claims = Claims(folder.claims)
        self._claim: Claim | None = None
        self._shards: Iterator[None] | None = None
        self._touched = 0.0

    @property
    def done(self) -> bool:
        return self._folder.cut_size() is not None

    def step(self) -> bool:
        """Cut another shard; return False if there is nothing to do at present."""
        if self._shards is None and not self._begin():
            return False
        assert self._shards is not None and self._claim is not None
        if time.monotonic() - self._touched > HEARTBEAT_SECONDS:
            self._touched = time.monotonic()
            self._claim.touch()
        return next(self._shards, "end") is None

    def run(self, wait: Callable[[], None] = lambda: time.sleep(0.2)) -> None:
        """Cut the whole input, or wait until another process has done it."""
        try:
            while not self.done:
                if not self.step():
                    wait()
        finally:
            self.close()

    def close(self) -> None:
        """Leave the rest to another process."""
        if self._claim is not None:
            self._claim.finish()
            self._claim, self._shards = None, None

    def _begin(self) -> bool:
        """Begin to cut; return False if it is done, or if another process does it."""
        if self.done:
            return False
        claim = self._claims.take(CLAIM, max_attempts=None)
        if claim is None:
            return False
        assert not isinstance(claim, Exhausted)
        self._claim, self._shards = claim, self._cut()
        return True

    def _cut(self) -> Iterator[None]:
        """Write a shard at a time, and at the end the number of all."""
        lines = read_lines(self._file)
        count = total = 0
        while shard_lines := list(islice(lines, self._shard_lines)):
            if not self._folder.has_source(count):
                self._folder.write_source(count, shard_lines)
            count, total = count + 1, total + len(shard_lines)
            yield None
        self._folder.write_cut_size(CutSize(count, total))
        self.close()
