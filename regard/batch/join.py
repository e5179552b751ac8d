"""Joining the translated shards to one text, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from regard.batch.folder import GROUP, ShardFolder
from regard.batch.manifest import read_manifest
from regard.runtime.files import open_output


def join_shards(shards: str | Path, output: str | Path) -> None:
    """Write the translations of all shards of a folder to one file, in the order of the input.

    Raise a ValueError if some are missing.
    """
    texts = joined_texts(ShardFolder(Path(shards)))
    with open_output(output) as file:
        for text in texts:
            file.write(text)


def joined_texts(folder: ShardFolder) -> Iterator[bytes]:
    """Return the translations of each shard, in order; raise a ValueError if some are missing."""
    read_manifest(folder)
    size = folder.cut_size()
    if size is None:
        raise ValueError(f"{folder.root}: the input is not cut to its end; the same command without --join goes on")
    groups = range(-(-size.shards // GROUP))
    missing = size.shards - sum(len(folder.done_in_group(group)) for group in groups)
    if missing:
        described = f"{missing:,} of {size.shards:,} shards {'is' if missing == 1 else 'are'} missing"
        raise ValueError(f"{folder.root}: {described}; the same command without --join translates them")
    return (folder.target(shard).read_bytes() for shard in range(size.shards))
