"""The work of one process: take shards and translate them until none is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from regard.batch.claims import Claim, Claims, Exhausted
from regard.batch.folder import GROUP, ShardFolder, shard_name
from regard.batch.manifest import Manifest
from regard.batch.translation import translate_lines
from regard.runtime.processes import reason_of
from regard.tasks.translation.predictor import Translator

WAIT_SECONDS = 0.2  # between two passes over the shards that others work on


@dataclass
class ShardQueue:
    """Hands out the shards that are missing, in order; those that other processes work on are tried again later."""

    folder: ShardFolder
    claims: Claims
    wait: Callable[[], None] = lambda: time.sleep(WAIT_SECONDS)
    _ended_groups: set[int] = field(default_factory=set)  # all shards of these are done or have failed

    def __iter__(self) -> Iterator[tuple[int, Claim]]:
        """Yield (shard, claim) until every shard is done or has failed."""
        while True:
            is_cut = self.folder.cut_size() is not None  # asked first: no source comes after it
            missing = 0
            for shard in self.missing():
                claim = self.take(shard)
                if claim is not None:
                    yield shard, claim
                missing += not self.folder.has_ended(shard)
            if is_cut and not missing:
                return
            self.wait()

    def take(self, shard: int) -> Claim | None:
        """Claim a shard; None: another process works on it, or it has ended."""
        if self.folder.has_ended(shard):
            return None
        claim = self.claims.take(shard_name(shard))
        if isinstance(claim, Exhausted):
            self.folder.write_failure(shard, claim.reason)
            return None
        if claim is not None and self.folder.is_done(shard):  # finished between the two lines above
            claim.release()
            return None
        return claim

    def missing(self) -> Iterator[int]:
        """Yield the shards that are cut and neither done nor failed."""
        group = 0
        while group in self._ended_groups or (sources := self.folder.cut_in_group(group)):
            if group not in self._ended_groups:
                ended = self.folder.done_in_group(group) | self.folder.failed_in_group(group)
                if len(ended) == GROUP:
                    self._ended_groups.add(group)
                yield from sorted(sources - ended)
            group += 1


class Shift:
    """One process at work. `release` may be called from another thread, just before the process ends."""

    def __init__(self, folder: ShardFolder, manifest: Manifest, translator: Translator) -> None:
        self._folder, self._manifest, self._translator = folder, manifest, translator
        self._claim: Claim | None = None

    def release(self) -> None:
        """Give back the shard in work."""
        if self._claim is not None:
            self._claim.release()

    def translate(self, shard: int, claim: Claim) -> tuple[int, int] | None:
        """Translate a shard and put it in place; return the numbers of its lines and notices, or None if it failed.

        An interrupt or an error of the disk gives the shard back; any other error is recorded as a failed attempt.
        """
        self._claim = claim
        try:
            with claim.heartbeat():
                return self._translate(shard, claim)
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:  # no shard is to blame for a disk that is full
                claim.release()
                raise
            claim.fail(reason_of(error))
            return None
        except BaseException:
            claim.release()
            raise
        finally:
            self._claim = None

    def _translate(self, shard: int, claim: Claim) -> tuple[int, int]:
        lines = self._folder.read_source(shard)
        translated = translate_lines(self._translator, lines, self._manifest.options, shard)
        first = shard * self._manifest.shard_lines + 1  # lines are counted from 1
        notices = [(first + index, notice) for index, notice in translated.notices]
        self._folder.write_target(shard, translated.lines, notices)
        claim.finish()
        if claim.attempt > 1:
            self._folder.remove_leftovers(shard)
        return len(lines), len(notices)
