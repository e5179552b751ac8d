"""A dev part out of the training pairs, chosen by what the sources say and by nothing else."""

import hashlib
from collections.abc import Sequence

from regard.text.normal import match_key
from regard.text.pairs import Pair

LEAST, MOST = 50, 1_000
"""Bounds of the dev part, in sources, as long as it stays under a fifth of them."""


def split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """(train, dev), each in the order that came; all lines of one source go to the same part.

    The distinct sources, by `match_key`, are ranked by a hash, and the first n are dev: 5 % of them, at least 50 and at
    most 1,000, never over 20 %. So the order of the lines changes nothing, and a line that is added moves a source only
    where the share grows or the new source ranks before it.
    """
    keys = [match_key(pair.source) for pair in pairs]
    ranked = sorted(set(keys), key=_rank)
    count = dev_size(len(ranked))
    if count == 0:
        raise ValueError(f"a dev part needs 5 distinct sources, {len(ranked)} came; add pairs, or give some with --dev")
    chosen = set(ranked[:count])
    train = [pair for pair, key in zip(pairs, keys, strict=True) if key not in chosen]
    dev = [pair for pair, key in zip(pairs, keys, strict=True) if key in chosen]
    return train, dev


def dev_size(sources: int) -> int:
    """Return how many of so many distinct sources become dev: 5 %, at least 50 and at most 1,000, never over 20 %."""
    return min(max(sources // 20, LEAST), MOST, sources // 5)


def leaked_sources(train: Sequence[Pair], dev: Sequence[Pair]) -> int:
    """How many distinct sources of dev, by `match_key`, also occur in train."""
    return len({match_key(pair.source) for pair in dev} & {match_key(pair.source) for pair in train})


def shared_targets(train: Sequence[Pair], dev: Sequence[Pair]) -> int:
    """How many distinct targets of dev, by `match_key`, also occur in train."""
    return len({match_key(pair.target) for pair in dev} & {match_key(pair.target) for pair in train})


def _rank(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=16).digest()
