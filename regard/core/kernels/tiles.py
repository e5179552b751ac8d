"""Attention tile by tile, forward and backward by hand, in memory that grows with what is kept.

Forward, for each tile: energies, weights, context; of a softmax only the context and lse = log Σ exp are kept. Parts of
a union are merged by log-sum-exp:

    lse = log(e^{lse₁} + e^{lse₂}),      context = e^{lse₁ − lse} context₁ + e^{lse₂ − lse} context₂

Backward: the weights are computed again, of a softmax as p = exp(energy − lse) with the merged lse, so that every
part's weights are final and nothing differentiates through the merge. With g the gradient of the context:

    dV += pᵀ g,      dp = g Vᵀ,      de = p ⊙ (dp − Σ g ⊙ context + dlse),      and from de by the score to q and k

Everything works in classes [step, G, M, …]: M members of each residue class of positions mod step, G rows of the batch.
Without a stride there is one class, and the members are the positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from regard.core import noise
from regard.core.kernels.classes import regroup, ungroup
from regard.core.kernels.energies import AdditiveTile, BilinearTile, wide
from regard.core.kernels.flat import Flat
from regard.core.kernels.parts import HeavyTile, Part, Tile
from regard.core.kernels.scratch import Scratch
from regard.core.normalizers import Entmax, Softmax
from regard.core.spans import Span, Spans

_PAIRS = 1 << 20  # energies in a tile, over all rows of the batch that it holds: 4 MiB in float32; measured
_MANY = 8  # more spans than this are gathered by index, and asked about in one go

Chunk = tuple[slice, slice]
"""(classes, rows of the batch)"""


@dataclass(frozen=True)
class Settings:
    """What a pass over tiles needs and that has no gradient."""

    parts: tuple[Part, ...]
    normalizer: Entmax
    """a Softmax here has temperature 1: the temperature is in the scale or the vector, and in the bias"""
    scale: float
    """of bilinear scores, with the temperature in it"""
    position: int
    keys: int
    visible: Flat | None
    """bool [G, S]"""
    allowed: Flat | None
    """bool [G, T, S or 1]"""
    bias: Flat | None
    """[G, T or 1, S or 1]"""
    rows: Tensor
    """int64 [G]: by what noise knows the rows of the batch"""
    dropout: float
    seed: int
    gumbel: float
    """how much Gumbel noise is added to the energies: 0, or 1 / temperature"""
    noise_seed: int


class Tiled:
    """One part of one problem, regrouped into its classes, with the ways into its tiles."""

    def __init__(self, settings: Settings, part: Part, query: Tensor, key: Tensor, vector: Tensor | None) -> None:
        self.settings, self.part, self.vector = settings, part, vector
        self.offset = settings.position % part.step
        self.batch, self.queries = query.shape[0], query.shape[1]
        self.query = self.by_query(query)  # [step, G, rows, D]
        self.key = self.by_key(key)  # [step, G, columns, D]
        self.visible = self._visible()
        self.scratch = Scratch()

    def by_query(self, states: Tensor) -> Tensor:
        """[G, T, D] → [step, G, rows, D]"""
        return regroup(states, self.part.step, self.offset)

    def by_key(self, states: Tensor) -> Tensor:
        """[G, S, D] → [step, G, columns, D]"""
        return regroup(states, self.part.step, 0)

    def _visible(self) -> Flat | None:
        """bool [G, columns, step], False also for members that only fill up a class."""
        given, fills = self.settings.visible, self.settings.keys % self.part.step > 0
        if given is None and not fills:
            return None
        if given is None:
            every = torch.ones(1, self.settings.keys, dtype=torch.bool, device=self.query.device)
            given = Flat(every, torch.zeros(self.batch, dtype=torch.int64, device=self.query.device))
        classes = regroup(given.tensor[..., None], self.part.step, 0)  # [step, rows, columns, 1]
        return Flat(classes[..., 0].permute(1, 2, 0), given.index)

    def chunks(self, tile: Tile) -> Iterator[Chunk]:
        """Classes and rows of the batch that are computed together: as many as the caches hold."""
        step, area = self.part.step, max(1, tile.height * tile.width)
        for classes in _shares(step, max(1, _PAIRS // (area * max(1, self.batch)))):
            for batch in _shares(self.batch, max(1, _PAIRS // area)):
                yield classes, batch

    def rows_of(self, grouped: Tensor, tile: Tile, chunk: Chunk) -> Tensor:
        """[step, G, rows, D] → [B, R, D], B = classes × rows of the batch in the chunk."""
        chosen = grouped[chunk]
        if isinstance(tile, HeavyTile):
            chosen = chosen.index_select(2, self._numbers(tile.rows))
        else:
            chosen = chosen[:, :, tile.rows[0] : tile.rows[1]]
        return chosen.flatten(0, 1)

    def keys_of(self, grouped: Tensor, tile: Tile, chunk: Chunk) -> Tensor:
        """[step, G, columns, D] → [B, C, D]"""
        chosen = grouped[chunk].flatten(0, 1)
        if len(tile.spans) == 1:
            return chosen[:, tile.spans[0][0] : tile.spans[0][1]]
        if len(tile.spans) <= _MANY:
            return torch.cat([chosen[:, lo:hi] for lo, hi in tile.spans], dim=1)
        return chosen.index_select(1, self.columns(tile.spans))

    def put_rows(self, grouped: Tensor, tile: Tile, chunk: Chunk, amount: Tensor) -> None:
        """The inverse of `rows_of`: write [B, R, D] into [step, G, rows, D]."""
        target = grouped[chunk]
        amount = amount.view(*target.shape[:2], *amount.shape[1:])
        if isinstance(tile, HeavyTile):
            target.index_copy_(2, self._numbers(tile.rows), amount)
        else:
            target[:, :, tile.rows[0] : tile.rows[1]] = amount

    def add_rows(self, grouped: Tensor, tile: Tile, chunk: Chunk, amount: Tensor) -> None:
        """Add [B, R, D] to [step, G, rows, D]."""
        target = grouped[chunk]
        amount = amount.view(*target.shape[:2], *amount.shape[1:])
        if isinstance(tile, HeavyTile):
            target.index_add_(2, self._numbers(tile.rows), amount)
        else:
            target[:, :, tile.rows[0] : tile.rows[1]] += amount

    def add_keys(self, grouped: Tensor, tile: Tile, chunk: Chunk, amount: Tensor) -> None:
        """Add [B, C, D] to [step, G, columns, D]."""
        target = grouped[chunk]
        amount = amount.view(*target.shape[:2], *amount.shape[1:])
        if len(tile.spans) > _MANY:
            target.index_add_(2, self.columns(tile.spans), amount)
            return
        at = 0
        for lo, hi in tile.spans:
            target[:, :, lo:hi] += amount[:, :, at : at + hi - lo]
            at += hi - lo

    def columns(self, spans: Spans) -> Tensor:
        """The members that the spans hold: int64 [C]."""
        return torch.cat([torch.arange(lo, hi, device=self.query.device) for lo, hi in spans])

    def _numbers(self, rows: tuple[int, ...]) -> Tensor:
        return torch.tensor(rows, device=self.query.device)

    def positions(self, tile: Tile, chunk: Chunk, spans: Spans) -> tuple[Tensor, Tensor]:
        """(i [classes, 1, R, 1], j [classes, 1, 1, C]) in the whole sequence."""
        step = self.part.step
        device = self.query.device
        residue = torch.arange(chunk[0].start, chunk[0].stop, device=device)[:, None, None, None]
        rows = self._numbers(tile.rows) if isinstance(tile, HeavyTile) else torch.arange(*tile.rows, device=device)
        first = self.settings.position // step
        return (rows[:, None] + first) * step + residue, self.columns(spans) * step + residue

    def score(self, chunk: Chunk) -> BilinearTile | AdditiveTile:
        if self.vector is None:
            return BilinearTile(self.settings.scale)
        classes = chunk[0].stop - chunk[0].start
        return AdditiveTile(self.vector[chunk[1]].repeat(classes, 1))

    def energies(self, tile: Tile, chunk: Chunk, q: Tensor, k: Tensor) -> Tensor:
        """[B, R, C]: score, bias and noise, −inf where a query may not look."""
        energies = self.score(chunk).energies(q, k, self.scratch)
        by_class = energies.view(chunk[0].stop - chunk[0].start, -1, *energies.shape[1:])  # [classes, g, R, C]
        if self.settings.bias is not None:
            by_class += self.pairs_of(self.settings.bias, tile, chunk)
        if self.settings.gumbel:
            drawn = noise.gumbel(self.settings.noise_seed, *self.counters(tile, chunk), dtype=energies.dtype)
            by_class.add_(drawn, alpha=self.settings.gumbel)
        self._hide(by_class, tile, chunk)
        return energies

    def _hide(self, energies: Tensor, tile: Tile, chunk: Chunk) -> None:
        """−inf where the pattern, padding or the caller's mask hides a key: energies [classes, g, R, C], in place."""
        spans = tile.doubtful if len(tile.doubtful) <= _MANY else tile.spans
        for span, at in _within(tile.spans, spans):
            energies[..., at[0] : at[1]].masked_fill_(self._hidden(tile, chunk, span), -torch.inf)
        if self.visible is not None:
            seen = self.visible.take(chunk[1].start, chunk[1].stop)[:, self.columns(tile.spans), chunk[0]]
            if not bool(seen.all()):
                energies.masked_fill_(~seen.permute(2, 0, 1)[:, :, None], -torch.inf)
        if self.settings.allowed is not None:
            energies.masked_fill_(~self.pairs_of(self.settings.allowed, tile, chunk), -torch.inf)

    def _hidden(self, tile: Tile, chunk: Chunk, spans: Spans) -> Tensor:
        """bool, broadcasts to [classes, g, R, C]: which pairs of the part's own tile are not the part's."""

        def compute() -> Tensor:
            i, j = self.positions(tile, chunk, spans)
            allowed = self.part.pattern.allows(i, j, self.settings.keys)
            if self.part.without is not None:
                allowed = allowed & ~self.part.without.allows(i, j, self.settings.keys)
            return ~allowed

        place = (type(tile), tile.rows, spans, chunk[0].start, chunk[0].stop, self.settings.position, self.query.device)
        return self.part.masks.get(place, compute)

    def pairs_of(self, flat: Flat, tile: Tile, chunk: Chunk) -> Tensor:
        """The tile of something given for pairs, [G, T or 1, S or 1] → [g, R or 1, C or 1]. Only without a stride."""
        pairs = flat.take(chunk[1].start, chunk[1].stop)
        if pairs.shape[1] > 1:
            heavy = isinstance(tile, HeavyTile)
            pairs = pairs[:, self._numbers(tile.rows)] if heavy else pairs[:, tile.rows[0] : tile.rows[1]]
        return pairs[:, :, self.columns(tile.spans)] if pairs.shape[2] > 1 else pairs

    def counters(self, tile: Tile, chunk: Chunk) -> tuple[Tensor, Tensor, Tensor]:
        """By what noise knows the tile's pairs."""
        i, j = self.positions(tile, chunk, tile.spans)
        return self.settings.rows[chunk[1]][:, None, None], i, j

    def kept(self, tile: Tile, chunk: Chunk, dtype: torch.dtype) -> Tensor | None:
        """[B, R, C]: by what dropout multiplies the weights, 0 or 1 / (1 − dropout); None: no dropout."""
        rate = self.settings.dropout
        if rate == 0:
            return None
        drawn = noise.uniform(self.settings.seed, *self.counters(tile, chunk))
        return (drawn >= rate).flatten(0, 1).to(dtype).mul_(1 / (1 - rate))


def attend(
    settings: Settings, query: Tensor, key: Tensor, value: Tensor, vector: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """(context [G, T, Dv], lse [G, T]), differentiable. The lse of sparse normalizers is empty."""
    return cast(tuple[Tensor, Tensor], _Attend.apply(query, key, value, vector, bias, settings))  # type: ignore[no-untyped-call]


class _Attend(torch.autograd.Function):
    """`bias` is the tensor inside `settings.bias`: it is passed so that autograd sees it."""

    @staticmethod
    def forward(ctx, query, key, value, vector, bias, settings):  # type: ignore[no-untyped-def]
        context, lse = _forward(settings, query, key, value, vector)
        ctx.settings = settings
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(query, key, value, vector, context, lse)
        return context, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_context, grad_lse):  # type: ignore[no-untyped-def]
        query, key, value, vector, context, lse = ctx.saved_tensors
        backward = _Backward(ctx.settings, query, key, value, vector, ctx.needs_input_grad)
        return backward(context, lse, grad_context, grad_lse)


def _forward(
    settings: Settings, query: Tensor, key: Tensor, value: Tensor, vector: Tensor | None
) -> tuple[Tensor, Tensor]:
    context = lse = None
    for part in settings.parts:
        part_context, part_lse = _forward_part(Tiled(settings, part, query, key, vector), value)
        if context is None or lse is None:
            context, lse = part_context, part_lse
        else:
            context, lse = _merge(context, lse, part_context, part_lse)
    assert context is not None and lse is not None
    return context.to(value.dtype), lse[..., 0] if isinstance(settings.normalizer, Softmax) else lse.new_empty(0)


def _forward_part(tiled: Tiled, value: Tensor) -> tuple[Tensor, Tensor]:
    """(context [G, T, Dv], lse [G, T, 1]) in float32 or better."""
    value = tiled.by_key(value)
    dtype = wide(value[:0]).dtype
    context = value.new_zeros(*tiled.query.shape[:3], value.shape[-1], dtype=dtype)
    lse = value.new_full((*tiled.query.shape[:3], 1), -torch.inf, dtype=dtype)
    for tile in (*tiled.part.tiles, *tiled.part.heavy_tiles):
        for chunk in tiled.chunks(tile):
            q, k = tiled.rows_of(tiled.query, tile, chunk), tiled.keys_of(tiled.key, tile, chunk)
            energies = tiled.energies(tile, chunk, q, k)
            v = tiled.keys_of(value, tile, chunk)
            kept = tiled.kept(tile, chunk, dtype)
            if isinstance(tiled.settings.normalizer, Softmax):
                tile_context, tile_lse = _softmax_context(energies, v, kept)
                tiled.put_rows(lse, tile, chunk, tile_lse)
            else:
                weights = tiled.settings.normalizer.weigh(energies)
                tile_context = wide(torch.bmm((weights if kept is None else weights * kept).to(v.dtype), v))
            tiled.put_rows(context, tile, chunk, tile_context)
    return (
        ungroup(context, tiled.queries, tiled.offset),
        ungroup(lse, tiled.queries, tiled.offset),
    )


def _softmax_context(energies: Tensor, value: Tensor, kept: Tensor | None) -> tuple[Tensor, Tensor]:
    """energies [B, R, C], overwritten; value [B, C, Dv] → (context [B, R, Dv], lse [B, R, 1])."""
    highest = energies.amax(-1, keepdim=True)
    highest.masked_fill_(highest == -torch.inf, 0)
    weights = energies.sub_(highest).exp_()
    total = weights.sum(-1, keepdim=True)
    lse = total.log().add_(highest)
    if kept is not None:
        weights.mul_(kept)
    context = wide(torch.bmm(weights.to(value.dtype), value))
    return context.div_(total.masked_fill_(total == 0, 1)), lse


def _merge(context: Tensor, lse: Tensor, more: Tensor, more_lse: Tensor) -> tuple[Tensor, Tensor]:
    total = torch.logaddexp(lse, more_lse)
    finite = total.masked_fill(total == -torch.inf, 0)
    merged = context.mul_((lse - finite).exp_()).addcmul_(more, (more_lse - finite).exp_())
    return merged, total


class _Backward:
    """The gradients of query, key, value, vector and bias, part by part."""

    def __init__(
        self,
        settings: Settings,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        vector: Tensor | None,
        needed: tuple[bool, ...],
    ) -> None:
        self.settings, self.query, self.key, self.value, self.vector = settings, query, key, value, vector
        self.energies_needed = needed[0] or needed[1] or needed[3] or needed[4]
        self.value_needed = needed[2]
        self.grad_vector = None if vector is None else torch.zeros_like(wide(vector))
        self.grad_bias: Flat | None = None
        if settings.bias is not None and needed[4]:
            self.grad_bias = Flat(torch.zeros_like(wide(settings.bias.tensor)), settings.bias.index)

    def __call__(self, context: Tensor, lse: Tensor, grad_context: Tensor | None, grad_lse: Tensor | None):  # type: ignore[no-untyped-def]
        g = torch.zeros_like(context) if grad_context is None else grad_context
        # de = p ⊙ (dp − offset): what the softmax takes off, less what lse's own gradient gives
        offset = wide(g.new_empty(*g.shape[:2], 1))
        for row in range(len(g)):  # one at a time: the product of all would be as large as the context
            offset[row] = (wide(g[row]) * wide(context[row])).sum(-1, keepdim=True)
        if grad_lse is not None and lse.numel():
            offset = offset - grad_lse[..., None]
        # a row with nothing to look at has lse −inf: +inf in its place makes every weight 0
        ends = lse.masked_fill(lse == -torch.inf, torch.inf)[..., None] if lse.numel() else None
        totals: list[Tensor | None] = [None, None, None]
        for part in self.settings.parts:
            grads = self._part(Tiled(self.settings, part, self.query, self.key, self.vector), g, offset, ends)
            totals = [new if old is None else old.add_(new) for old, new in zip(totals, grads, strict=True)]
        grad_query, grad_key, grad_value = (None if total is None else total.to(self.query.dtype) for total in totals)
        grad_vector = None if self.grad_vector is None else self.grad_vector.to(self.query.dtype)
        grad_bias = None
        if self.grad_bias is not None and self.settings.bias is not None:
            grad_bias = self.grad_bias.tensor.to(self.settings.bias.tensor.dtype)
        return grad_query, grad_key, grad_value, grad_vector, grad_bias, None

    def _part(self, tiled: Tiled, g: Tensor, offset: Tensor, ends: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The part's gradients of query [G, T, D], key [G, S, D] and value [G, S, Dv]."""
        value = tiled.by_key(self.value)
        grads = tuple(torch.zeros_like(wide(x)) for x in (tiled.query, tiled.key, value))
        rows = [tiled.by_query(g), tiled.by_query(offset)]
        ends = None if ends is None else tiled.by_query(ends)
        for tile in (*tiled.part.tiles, *tiled.part.heavy_tiles):
            for chunk in tiled.chunks(tile):
                self._tile(tiled, tile, chunk, value, rows, ends, grads)
        return (
            ungroup(grads[0], tiled.queries, tiled.offset),
            ungroup(grads[1], self.settings.keys, 0),
            ungroup(grads[2], self.settings.keys, 0),
        )

    def _tile(  # type: ignore[no-untyped-def]
        self, tiled: Tiled, tile: Tile, chunk: Chunk, value: Tensor, rows: list[Tensor], ends: Tensor | None, grads
    ) -> None:
        q, k = tiled.rows_of(tiled.query, tile, chunk), tiled.keys_of(tiled.key, tile, chunk)
        v = tiled.keys_of(value, tile, chunk)
        g, offset = (tiled.rows_of(x, tile, chunk) for x in rows)
        if tile.replaced:  # heavy tiles computed these rows: no gradient comes back here
            numbers = torch.tensor(tile.replaced, device=g.device)
            g, offset = g.index_fill(1, numbers, 0), offset.index_fill(1, numbers, 0)
        energies = tiled.energies(tile, chunk, q, k)
        if ends is None:
            weights = self.settings.normalizer.weigh(energies)
        else:
            weights = energies.sub_(tiled.rows_of(ends, tile, chunk)).exp_()
        kept = tiled.kept(tile, chunk, weights.dtype)
        if self.value_needed:
            used = weights if kept is None else weights * kept
            tiled.add_keys(grads[2], tile, chunk, wide(torch.bmm(used.to(g.dtype).mT, g)))
        if not self.energies_needed:
            return
        slopes = wide(tiled.scratch.bmm("slopes", g, v.mT))  # dp
        if kept is not None:
            slopes.mul_(kept)
        if ends is None:
            slopes = self.settings.normalizer.backward(weights, slopes)
        else:
            slopes.sub_(offset).mul_(weights)  # de
        grad_q, grad_k, grad_vector = tiled.score(chunk).backward(slopes, q, k)
        tiled.add_rows(grads[0], tile, chunk, wide(grad_q))
        tiled.add_keys(grads[1], tile, chunk, wide(grad_k))
        if grad_vector is not None and self.grad_vector is not None:
            classes = chunk[0].stop - chunk[0].start
            self.grad_vector[chunk[1]] += grad_vector.view(classes, -1, grad_vector.shape[-1]).sum(0)
        if self.grad_bias is not None:
            self._add_bias(tiled, tile, chunk, slopes)

    def _add_bias(self, tiled: Tiled, tile: Tile, chunk: Chunk, slopes: Tensor) -> None:
        """Add de [g, R, C] to the bias's gradient [G, T or 1, S or 1]."""
        assert self.grad_bias is not None
        total = self.grad_bias.tensor
        slopes = slopes.sum(1, keepdim=True) if total.shape[1] == 1 else slopes
        slopes = slopes.sum(2, keepdim=True) if total.shape[2] == 1 else slopes
        device = total.device
        numbers = torch.arange(chunk[1].start, chunk[1].stop, device=device)
        batch = numbers if self.grad_bias.index is None else self.grad_bias.index[chunk[1]]
        rows = torch.zeros(1, dtype=torch.int64, device=device)
        if total.shape[1] > 1:
            heavy = isinstance(tile, HeavyTile)
            rows = torch.tensor(tile.rows, device=device) if heavy else torch.arange(*tile.rows, device=device)
        columns = tiled.columns(tile.spans) if total.shape[2] > 1 else torch.zeros(1, dtype=torch.int64, device=device)
        where = (batch[:, None, None], rows[:, None], columns)
        total.index_put_(where, slopes.to(total.dtype), accumulate=True)


def _shares(total: int, most: int) -> Iterator[slice]:
    """0 … total − 1 in as few slices as hold at most `most` each, of nearly equal size."""
    count = -(-total // most)
    for share in range(count):
        yield slice(share * total // count, (share + 1) * total // count)


def _within(outer: Spans, inner: Spans) -> Iterator[tuple[Spans, Span]]:
    """Each inner span with the place (start, stop) it has when the outer spans are laid end to end."""
    if inner == outer:
        yield inner, (0, sum(hi - lo for lo, hi in outer))
        return
    at = 0
    for start, stop in outer:
        for lo, hi in inner:
            if start <= lo and hi <= stop:
                yield ((lo, hi),), (at + lo - start, at + hi - start)
        at += stop - start
