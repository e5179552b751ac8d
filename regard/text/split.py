"""Split of a dev part from the training pairs, determined by the source texts alone."""

import hashlib
from collections.abc import Sequence

from regard.text.normal import match_key
from regard.text.pairs import Pair

MIN_DEV_SOURCES, MAX_DEV_SOURCES = 50, 1_000
"""bounds of the size of the dev part, in sources, as long as it is at most a fifth of them"""


def split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Return (train, dev), each in the order of the pairs; all lines with the same source go to the same part.

    The distinct sources, by `match_key`, are ranked by a hash, and the first n are dev: 5 % of them, at least 50 and at
    most 1,000, never over 20 %. So the order of the lines does not matter, and adding a line moves a source to another
    part only if n grows or the new source ranks before it.
    """
    keys = [match_key(pair.source) for pair in pairs]
    ranked = sorted(set(keys), key=lambda key: hashlib.blake2b(key.encode(), digest_size=16).digest())
    count = dev_size(len(ranked))
    if count == 0:
        raise ValueError(f"a dev part needs 5 distinct sources, {len(ranked)} came; add pairs, or give some with --dev")
    chosen = set(ranked[:count])
    train = [pair for pair, key in zip(pairs, keys, strict=True) if key not in chosen]
    dev = [pair for pair, key in zip(pairs, keys, strict=True) if key in chosen]
    return train, dev


def dev_size(sources: int) -> int:
    """Return how many of `sources` distinct sources become dev: 5 %, at least 50 and at most 1,000, never over 20 %."""
    return min(max(sources // 20, MIN_DEV_SOURCES), MAX_DEV_SOURCES, sources // 5)


def leaked_sources(train: Sequence[Pair], dev: Sequence[Pair]) -> int:
    """Return how many distinct sources of dev, by `match_key`, also occur in train."""
    return len({match_key(pair.source) for pair in dev} & {match_key(pair.source) for pair in train})


def shared_targets(train: Sequence[Pair], dev: Sequence[Pair]) -> int:
    """Return how many distinct targets of dev, by `match_key`, also occur in train."""
    return len({match_key(pair.target) for pair in dev} & {match_key(pair.target) for pair in train})
