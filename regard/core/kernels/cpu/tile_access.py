"""Access to the tiles of a part: their queries, keys, positions, masks and energies.

All states are grouped in classes [step, G, M, …]: M members of each residue class of positions mod step, G rows of the
batch. Without a stride there is one class, and its members are the positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.kernels.cpu.energies import AdditiveTile, BilinearTile, Scratch
from regard.core.kernels.cpu.parts import HeavyTile, Part, Tile
from regard.core.kernels.flat import FlatRows
from regard.core.kernels.residues import regroup
from regard.core.normalizers import Entmax
from regard.core.patterns import Pattern
from regard.core.scores import at_least_float32
from regard.core.spans import Span, Spans
from regard.runtime import noise

_MAX_PAIRS = 1 << 20  # energies of a tile, over all rows of the batch in a chunk: 4 MiB in float32; measured
_MAX_SPANS = 8  # more spans than this are gathered by index, and their mask is computed in one call

Chunk = tuple[slice, slice]  # (classes, rows of the batch)


@dataclass(frozen=True)
class TileSettings:
    """Everything that a pass over tiles needs and that has no gradient."""

    pattern: Pattern
    parts: tuple[Part, ...]
    """of the pattern"""
    leading: torch.Size
    """the dims folded into G, the last of them heads"""
    heads_inside: bool
    """the context is to be laid out in memory as [..., T, heads, Dv]"""
    normalizer: Entmax
    """a Softmax here has temperature 1: the temperature is in the scale or the vector, and in the bias"""
    scale: float
    """the scale of bilinear scores, divided by the temperature"""
    position: int
    keys: int
    visible: FlatRows | None
    """bool [G, S]"""
    allowed: FlatRows | None
    """bool [G, T, S or 1]"""
    bias: FlatRows | None
    """[G, T or 1, S or 1]"""
    row_numbers: Tensor
    """int64 [G]: the numbers of the rows of the batch, from which noise is computed"""
    dropout: float
    seed: int | Tensor
    gumbel: float
    """how much Gumbel noise is added to the energies: 0, or 1 / temperature"""
    noise_seed: int | Tensor


class TileAccess:
    """One part of one problem, regrouped into its classes, with access to its tiles."""

    def __init__(self, settings: TileSettings, part: Part, query: Tensor, key: Tensor, vector: Tensor | None) -> None:
        self.settings, self.part, self.vector = settings, part, vector
        self.offset = settings.position % part.step
        self.batch, self.queries = query.shape[0], query.shape[1]
        self.query = self.by_query(query)  # [step, G, rows, D]
        self.key = self.by_key(key)  # [step, G, columns, D]
        self.visible = self._visible()
        self.scratch = Scratch()

    def by_query(self, states: Tensor) -> Tensor:
        """Regroup states of queries, [G, T, D] → [step, G, rows, D]."""
        return regroup(states, self.part.step, self.offset)

    def by_key(self, states: Tensor) -> Tensor:
        """Regroup states of keys, [G, S, D] → [step, G, columns, D]."""
        return regroup(states, self.part.step, 0)

    def _visible(self) -> FlatRows | None:
        """Return the visible keys, bool [G, columns, step], False also for the padding of classes; None if all are."""
        given, is_padded = self.settings.visible, self.settings.keys % self.part.step > 0
        if given is None and not is_padded:
            return None
        if given is None:
            all_visible = torch.ones(1, self.settings.keys, dtype=torch.bool, device=self.query.device)
            given = FlatRows(all_visible, torch.zeros(self.batch, dtype=torch.int64, device=self.query.device))
        classes = regroup(given.tensor[..., None], self.part.step, 0)  # [step, rows, columns, 1]
        return FlatRows(classes[..., 0].permute(1, 2, 0), given.index)

    def chunks(self, tile: Tile) -> Iterator[Chunk]:
        """Yield classes and rows of the batch that are computed together: as many as fit into the caches."""
        # The gradient of the keys, [width, features], counts too: few rows that attend to all keys make it the larger.
        step, area = self.part.step, max(1, tile.width * max(tile.height, self.key.shape[-1]))
        for classes in _even_slices(step, max(1, _MAX_PAIRS // (area * max(1, self.batch)))):
            for batch in _even_slices(self.batch, max(1, _MAX_PAIRS // area)):
                yield classes, batch

    def rows_of(self, grouped: Tensor, tile: Tile, chunk: Chunk) -> Tensor:
        """Select the tile's queries, [step, G, rows, D] → [B, R, D], B = classes × rows of the batch in the chunk.

        The result is float32 or better.
        """
        selected = grouped[chunk]
        if isinstance(tile, HeavyTile):
            selected = selected.index_select(2, tile.row_index(self.query.device))
        else:
            selected = selected[:, :, tile.rows[0] : tile.rows[1]]
        return at_least_float32(selected.flatten(0, 1))

    def keys_of(self, grouped: Tensor, tile: Tile, chunk: Chunk) -> Tensor:
        """Select the tile's keys, [step, G, columns, D] → [B, C, D], in float32 or better."""
        selected = grouped[chunk]
        if len(tile.spans) == 1:
            selected = selected[:, :, tile.spans[0][0] : tile.spans[0][1]]
        elif len(tile.spans) <= _MAX_SPANS:
            selected = torch.cat([selected[:, :, lo:hi] for lo, hi in tile.spans], dim=2)
        else:
            selected = selected.index_select(2, self.columns(tile.spans))
        return at_least_float32(selected.flatten(0, 1))

    def put_rows(self, grouped: Tensor, tile: Tile, chunk: Chunk, amount: Tensor) -> None:
        """The inverse of `rows_of`: write [B, R, D] into [step, G, rows, D]."""
        target = grouped[chunk]
        amount = amount.view(*target.shape[:2], *amount.shape[1:])
        if isinstance(tile, HeavyTile):
            target.index_copy_(2, tile.row_index(self.query.device), amount)
        else:
            target[:, :, tile.rows[0] : tile.rows[1]] = amount

    def add_keys(self, grouped: Tensor, tile: Tile, chunk: Chunk, amount: Tensor) -> None:
        """Add [B, C, D] to [step, G, columns, D]."""
        target = grouped[chunk]
        amount = amount.view(*target.shape[:2], *amount.shape[1:])
        if len(tile.spans) > _MAX_SPANS:
            target.index_add_(2, self.columns(tile.spans), amount)
            return
        at = 0
        for lo, hi in tile.spans:
            target[:, :, lo:hi] += amount[:, :, at : at + hi - lo]
            at += hi - lo

    def columns(self, spans: Spans) -> Tensor:
        """Return the members in the spans, int64 [C]."""
        device = self.query.device
        if len(spans) == 1:
            return torch.arange(*spans[0], device=device)
        starts, stops = torch.tensor(spans, device=device).unbind(1)
        lengths = stops - starts
        ends = lengths.cumsum(0)  # where each span ends in the concatenation of all spans
        return torch.arange(int(ends[-1]), device=device) + (stops - ends).repeat_interleave(lengths)

    def positions(self, tile: Tile, chunk: Chunk, spans: Spans) -> tuple[Tensor, Tensor]:
        """Return the positions in the whole sequence, (i [classes, 1, R, 1], j [classes, 1, 1, C])."""
        step, device = self.part.step, self.query.device
        residue = torch.arange(chunk[0].start, chunk[0].stop, device=device)[:, None, None, None]
        rows = tile.row_index(device)[:, None] + self.settings.position // step
        return rows * step + residue, self.columns(spans) * step + residue

    def score(self, chunk: Chunk) -> BilinearTile | AdditiveTile:
        if self.vector is None:
            return BilinearTile(self.settings.scale)
        classes = chunk[0].stop - chunk[0].start
        return AdditiveTile(self.vector[chunk[1]].repeat(classes, 1))

    def energies(self, tile: Tile, chunk: Chunk, q: Tensor, k: Tensor) -> Tensor:
        """Return energies [B, R, C]: score, bias and noise, −inf where a query may not attend."""
        energies = self.score(chunk).energies(q, k, self.scratch)
        by_class = energies.view(chunk[0].stop - chunk[0].start, -1, *energies.shape[1:])  # [classes, g, R, C]
        if self.settings.bias is not None:
            by_class += self.pairs_of(self.settings.bias, tile, chunk)
        if self.settings.gumbel:
            drawn = noise.gumbel(self.settings.noise_seed, *self.counters(tile, chunk), dtype=energies.dtype)
            by_class.add_(drawn, alpha=self.settings.gumbel)
        self._mask_(by_class, tile, chunk)
        return energies

    def _mask_(self, energies: Tensor, tile: Tile, chunk: Chunk) -> None:
        """Set energies [classes, g, R, C] to −inf, in place, where pattern, padding or the caller's mask hide keys."""
        spans = tile.doubtful if len(tile.doubtful) <= _MAX_SPANS else tile.spans
        for span, at in _within(tile.spans, spans):
            energies[..., at[0] : at[1]].masked_fill_(self._hidden(tile, chunk, span), -torch.inf)
        if self.visible is not None:
            visible = self.visible.take(chunk[1].start, chunk[1].stop)[:, self.columns(tile.spans), chunk[0]]
            if not bool(visible.all()):
                energies.masked_fill_(~visible.permute(2, 0, 1)[:, :, None], -torch.inf)
        if self.settings.allowed is not None:
            energies.masked_fill_(~self.pairs_of(self.settings.allowed, tile, chunk), -torch.inf)

    def _hidden(self, tile: Tile, chunk: Chunk, spans: Spans) -> Tensor:
        """Return the pairs of the tile that do not belong to the part, bool, broadcasts to [classes, g, R, C]."""

        def compute() -> Tensor:
            i, j = self.positions(tile, chunk, spans)
            allowed = self.part.pattern.allows(i, j, self.settings.keys)
            if self.part.without is not None:
                allowed = allowed & ~self.part.without.allows(i, j, self.settings.keys)
            return ~allowed

        place = (type(tile), tile.rows, spans, chunk[0].start, chunk[0].stop, self.query.device)
        return self.part.masks.get(place, compute)

    def pairs_of(self, rows: FlatRows, tile: Tile, chunk: Chunk) -> Tensor:
        """Select the tile of a bias or mask of pairs, [G, T or 1, S or 1] → [g, R or 1, C or 1]. Not for strides."""
        pairs = rows.tensor  # sliced before the batch is gathered: only the tile is copied
        if pairs.shape[1] > 1:
            rows_of_tile = tile.row_index(pairs.device) if isinstance(tile, HeavyTile) else slice(*tile.rows)
            pairs = pairs[:, rows_of_tile]
        if pairs.shape[2] > 1:
            spans = tile.spans
            pairs = pairs[:, :, spans[0][0] : spans[0][1]] if len(spans) == 1 else pairs[:, :, self.columns(spans)]
        return FlatRows(pairs, rows.index).take(chunk[1].start, chunk[1].stop)

    def counters(self, tile: Tile, chunk: Chunk) -> tuple[Tensor, Tensor, Tensor]:
        """Return (rows of the batch, i, j), from which the noise of the tile's pairs is computed."""
        i, j = self.positions(tile, chunk, tile.spans)
        return self.settings.row_numbers[chunk[1]][:, None, None], i, j

    def dropout_mask(self, tile: Tile, chunk: Chunk, dtype: torch.dtype) -> Tensor | None:
        """Return the factors of dropout, [B, R, C], each 0 or 1 / (1 − dropout); None without dropout."""
        rate = self.settings.dropout
        if rate == 0:
            return None
        drawn = noise.uniform(self.settings.seed, *self.counters(tile, chunk))
        return (drawn >= rate).flatten(0, 1).to(dtype).mul_(1 / (1 - rate))


def _even_slices(total: int, largest: int) -> Iterator[slice]:
    """Yield slices of 0 … total − 1, as few as possible with at most `largest` each, of nearly equal size."""
    count = -(-total // largest)
    for number in range(count):
        yield slice(number * total // count, (number + 1) * total // count)


def _within(outer: Spans, inner: Spans) -> Iterator[tuple[Spans, Span]]:
    """Yield each inner span with its (start, stop) in the concatenation of the outer spans."""
    if inner == outer:
        yield inner, (0, sum(hi - lo for lo, hi in outer))
        return
    at = 0
    for start, stop in outer:
        for lo, hi in inner:
            if start <= lo and hi <= stop:
                yield ((lo, hi),), (at + lo - start, at + hi - start)
        at += stop - start
