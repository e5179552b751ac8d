"""The work that a pattern means: parts, each a list of tiles.

A *tile* is a block of queries and the spans of keys they may attend to. A *part* is a list of tiles that together
contain every query at most once. A pattern without stride is one part. Strided and dilated terms of a union are parts
of their own: positions are regrouped into the residue classes mod `step`, in which a stride is full attention and a
dilation a window. Each part excludes what earlier parts covered, so no pair is counted twice.

Everything here is analytic: it costs O(tiles), never a sweep over T × S, and `layout_of` caches it for the next call
with the same pattern and sizes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, reduce
from itertools import product
from operator import and_, or_

import torch
from torch import Tensor

from regard.core import spans as runs
from regard.core.patterns import Both, Either, Pattern, Window
from regard.core.spans import Span, Spans
from regard.runtime.caches import cached

TILE_ROWS = 128  # queries in a tile: measured, 64 to 128 is best for windows of 256 to each side
_MAX_TERMS = 16
_MAX_MASK_BYTES = 4 << 20  # cached for each part; windows need a few kilobytes, because their tiles look alike


@dataclass(frozen=True)
class Tile:
    """Queries × keys, as indices from 0. In a regrouped part these are indices inside a residue class."""

    rows: Span | tuple[int, ...]
    """(start, stop) of a block of queries, or in `Part.heavy_tiles` the indices themselves"""
    spans: Spans
    """the keys to compute"""
    doubtful: Spans
    """those of them in which the pattern must be evaluated for each pair"""
    replaced: tuple[int, ...] = ()
    """rows of the tile, as indices in it, that a heavy tile computes: their results here are overwritten"""

    @property
    def height(self) -> int:
        return self.rows[1] - self.rows[0]

    def row_index(self, device: torch.device) -> Tensor:
        """Return the indices of the queries, int64 [R]."""
        return torch.arange(*self.rows, device=device)

    @property
    def width(self) -> int:
        return runs.length(self.spans)


@dataclass(frozen=True)
class HeavyTile(Tile):
    """Queries that see far more keys than their neighbours, computed together."""

    @property
    def height(self) -> int:
        return len(self.rows)

    def row_index(self, device: torch.device) -> Tensor:
        return torch.tensor(self.rows, device=device)


@dataclass(frozen=True)
class PatternTerm:
    """The pairs that `pattern` allows and `without` does not, in classes of positions mod `step`."""

    pattern: Pattern
    without: Pattern | None = None
    step: int = 1


class Masks:
    """A cache of masks. Equal masks are stored once; beyond a few megabytes masks are computed anew each time."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, Tensor] = {}
        self._by_content: dict[Hashable, Tensor] = {}
        self._bytes = 0

    def get(self, key: Hashable, compute: Callable[[], Tensor]) -> Tensor:
        """Return the cached mask of a key, or compute it."""
        cached = self._by_key.get(key)
        if cached is not None:
            return cached
        mask = compute()
        if self._bytes + mask.numel() <= _MAX_MASK_BYTES:
            content = (tuple(mask.shape), mask.device, bytes(mask.flatten().cpu().view(torch.uint8).numpy()))
            if content not in self._by_content:
                self._by_content[content] = mask
                self._bytes += mask.numel()
            mask = self._by_key[key] = self._by_content[content]
        return mask


@dataclass(frozen=True)
class Part(PatternTerm):
    """A term with its tiles."""

    _: KW_ONLY
    tiles: tuple[Tile, ...]
    heavy_tiles: tuple[HeavyTile, ...]  # their queries are in `tiles` too: the results of heavy tiles replace those
    masks: Masks = field(default_factory=Masks, compare=False, repr=False)

    @property
    def all_tiles(self) -> tuple[Tile, ...]:
        return (*self.tiles, *self.heavy_tiles)


@dataclass(frozen=True)
class PatternLayout:
    """The terms and parts of a pattern for given sizes, each computed when it is first needed."""

    pattern: Pattern
    queries: int
    keys: int
    position: int

    @cached_property
    def terms(self) -> tuple[PatternTerm, ...]:
        """All that has no stride, then each strided term without the pairs before it."""
        return _terms(self.pattern, max(self.position + self.queries, self.keys))

    def parts(self, regroup: bool) -> tuple[Part, ...]:
        """Return the part of each term; without `regroup`, the whole pattern is one part."""
        return self._parts_of_terms if regroup else self._whole_part

    @cached_property
    def _parts_of_terms(self) -> tuple[Part, ...]:
        return tuple(_part(term, self.queries, self.keys, self.position) for term in self.terms)

    @cached_property
    def _whole_part(self) -> tuple[Part, ...]:
        return (_part(PatternTerm(self.pattern), self.queries, self.keys, self.position),)


@cached(maxsize=128, reason="several kernels ask in each attention(); tiles and masks take up to milliseconds")
def layout_of(pattern: Pattern, queries: int, keys: int, position: int) -> PatternLayout:
    """Return the layout of a pattern."""
    return PatternLayout(pattern, queries, keys, position)


def _terms(pattern: Pattern, reach: int) -> tuple[PatternTerm, ...]:
    # A stride beyond the sequence leaves only i = j.
    terms = [term if term.step < reach else term.unstrided & Window(0) for term in as_union(pattern)]
    plain = [term for term in terms if term.step == 1]
    strided = [term for term in terms if term.step > 1]
    covered = reduce(or_, plain) if plain else None
    result = [] if covered is None else [PatternTerm(covered)]
    for term in strided:
        result.append(PatternTerm(term.unstrided, covered, term.step))
        covered = term if covered is None else covered | term
    return tuple(result)


def as_union(pattern: Pattern) -> list[Pattern]:
    """Return the pattern as a union of terms; & is distributed over | where a stride inside would otherwise be lost."""
    if isinstance(pattern, Either):
        return [term for inner in pattern.patterns for term in as_union(inner)]
    if isinstance(pattern, Both):
        factors = [as_union(inner) for inner in pattern.patterns]
        strides = any(term.step > 1 for terms in factors for term in terms)
        combinations = list(product(*factors))
        if strides and len(combinations) <= _MAX_TERMS:
            return [reduce(and_, terms) for terms in combinations]
    return [pattern]


def _part(term: PatternTerm, queries: int, keys: int, position: int) -> Part:
    pattern, step = term.pattern, term.step
    offset, first_member = position % step, position // step
    rows = -(-(offset + queries) // step) if queries else 0  # per class
    columns = -(-keys // step)
    heavy = [] if step > 1 else [r - position for r in pattern.heavy_rows if position <= r < position + queries]
    light = replace(term, pattern=pattern.light) if heavy else term
    tiles = []
    for start in range(0, rows, TILE_ROWS):
        stop = min(start + TILE_ROWS, rows)
        replaced = tuple(row - start for row in heavy[bisect_left(heavy, start) : bisect_left(heavy, stop)])
        if len(replaced) < stop - start:
            spans, doubtful = columns_of(light, keys, first_member, ((start, stop),))
            tiles.append(Tile((start, stop), spans, doubtful, replaced))
    heavy_tiles = []
    for tile_rows in (tuple(heavy[at : at + TILE_ROWS]) for at in range(0, len(heavy), TILE_ROWS)):
        spans, doubtful = columns_of(term, keys, first_member, runs.runs(tile_rows))
        if not spans and columns:  # these rows see no key, but must still replace what the other tiles computed
            spans = doubtful = ((0, 1),)
        heavy_tiles.append(HeavyTile(tile_rows, spans, doubtful))
    return Part(
        pattern,
        term.without,
        step,
        tiles=tuple(tile for tile in tiles if tile.spans),
        heavy_tiles=tuple(tile for tile in heavy_tiles if tile.spans),
    )


def columns_of(term: PatternTerm, keys: int, first_member: int, row_spans: Spans) -> tuple[Spans, Spans]:
    """Return (the keys that some rows may attend to, those of them that not certainly all rows may attend to).

    Rows and keys are members of a class, whose first row is `first_member`.
    """
    pattern, without, step = term.pattern, term.without, term.step
    possible: Spans = ()
    certain: Spans = ((0, -(-keys // step)),)
    for start, stop in row_spans:
        rows = ((first_member + start) * step, (first_member + stop) * step)
        reached = _outwards(pattern.spans(*rows, keys), step)
        sure = _inwards(pattern.certain(*rows, keys), step, keys)
        if without is not None:
            reached = runs.difference(reached, _inwards(without.certain(*rows, keys), step, keys))
            sure = runs.difference(sure, _outwards(without.spans(*rows, keys), step))
        possible = runs.union(possible, reached)
        certain = runs.intersection(certain, sure)
    return possible, runs.difference(possible, certain)


def _outwards(spans: Spans, step: int) -> Spans:
    """Return spans of positions as spans of class members, rounded outwards: members that lie inside in some class."""
    return spans if step == 1 else runs.union((lo // step, -(-hi // step)) for lo, hi in spans)


def _inwards(spans: Spans, step: int, keys: int) -> Spans:
    """Return spans of positions as spans of class members, rounded inwards: members that lie inside in every class.

    Behind the last key a class has only padding, which is masked elsewhere: there a member counts as inside.
    """
    if step == 1:
        return spans
    return runs.union((-(-lo // step), -(-hi // step) if hi == keys else hi // step) for lo, hi in spans)
