"""Additive attention in a few kernels of our own: nothing of size [G, T, S, H] ever exists, forward or back.

Energies exist for as many queries at a time (a *piece*) as keep them no larger than all queries themselves; if that is
all of them, the backward pass finds them kept, otherwise it computes them again. How it works and what bounds it:
docs/additive.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.core.kernels.flat import Flat
from regard.core.kernels.gpu import additive_device as device
from regard.core.kernels.gpu.blocks import Blocks, blocks_of, pieces_of
from regard.core.kernels.gpu.delta import delta_of
from regard.core.kernels.gpu.device import compile_ahead, launch
from regard.core.patterns import Pattern
from regard.runtime.device_guard import device_guard

HEIGHT, WIDTH = 64, 64
"""of a block"""
STRIP = 16
"""states of a block that a warp takes"""
SLICE = 64
"""features of values that a program takes"""
WARPS = 4096
"""that the energies should be; where there are fewer blocks, they are summed up in parts"""
MOST_PARTS = 4
FEW = 512
"""blocks, of all rows together, whose energies are never too many: 8 MiB, of several parts 16"""


@dataclass(frozen=True)
class Settings:
    """What has no gradient."""

    pattern: Pattern
    position: int
    visible: Flat | None
    """bool [G, S]"""
    allowed: Flat | None
    """bool [G, T or 1, S or 1]"""
    precision: str
    """of products of float32: "tf32x3", or "pairs" of bfloat16, better than TF32; 16-bit numbers have only one way"""
    asm: bool
    """by the GPU's own instructions; Triton's interpreter has none"""


def attend(settings: Settings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """q' [G, T, H], k' [G, S, H], v [G, H], value [G, S, D] → (context [G, T, D], lse [G, T]), differentiable."""
    _prepare(settings, query, key, vector, value)
    with device_guard(query.device):
        found: tuple[Tensor, Tensor] = _Additive.apply(settings, query, key, vector, value)  # type: ignore[no-untyped-call]
    return found


def _prepare(settings: Settings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> None:
    """Compile all kernels of a combination that is new, those of its backward pass too if it will have one."""
    states = query, key, vector, value
    trains = torch.is_grad_enabled() and any(each.requires_grad for each in states)
    kinds = settings.visible is None, settings.allowed is None, settings.precision, trains
    compile_ahead(
        ("additive", settings.pattern, query.dtype, query.shape[-1], value.shape[-1], *kinds),
        query.device,
        lambda: _launched(settings, *states, trains),
    )


def _launched(settings: Settings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor, backward: bool) -> None:
    """Launch everything once, forward and backward, for the first row of the batch."""
    query, key, value = (states[:1].contiguous() for states in (query, key, value))
    problem = _Problem(settings, query, key, _even(vector.float())[:1], value)
    queries, keys = problem.laid_out()
    context, lse, energies = problem.forward(queries, keys)
    if backward:
        wide = problem.query.float(), problem.key.float()
        given = _Given(context, lse, delta_of(context, context, lse), *wide, queries.reach, keys.reach)
        problem.backward(given, energies)


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, settings: Settings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        query, key, value = (x.contiguous() for x in (query, key, value))
        problem = _Problem(settings, query, key, _even(vector.float()), value)
        queries, keys = problem.laid_out()
        context, lse, energies = problem.forward(queries, keys)
        ctx.settings, ctx.dtype = settings, vector.dtype
        kept = [] if energies is None else [energies]
        ctx.save_for_backward(*problem.states, context, lse, queries.reach, keys.reach, *kept)
        return context, lse

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, lse_gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        refuse_second_order()
        query, key, vector, value, context, lse, query_reach, key_reach, *kept = ctx.saved_tensors
        problem = _Problem(ctx.settings, query, key, vector, value)
        gradient = gradient.to(value.dtype).contiguous()
        delta = delta_of(gradient, context, lse_gradient)
        given = _Given(gradient, lse, delta, query.float(), key.float(), query_reach, key_reach)
        by_query, by_key, by_vector, by_value = problem.backward(given, kept[0] if kept else None)
        return None, by_query, by_key, by_vector.to(ctx.dtype), by_value


def _even(vector: Tensor) -> Tensor:
    """v [G, H] with an even number of features, rows two by two apart; all rows may be the same in memory."""
    odd = vector.shape[1] % 2
    if odd or vector.stride(1) != 1 or vector.stride(0) % 2:
        return pad(vector, (0, odd)).contiguous()
    return vector


@dataclass(frozen=True)
class _LaidOut:
    """States for the device."""

    powers: Tensor
    """e^{2x}, hidden-first: int64 [G, ⌈H / 2⌉, tiles · size] of two float32 each"""
    reach: Tensor
    """the largest |x| of each tile, [G, tiles]"""

    @classmethod
    def of(cls, states: Tensor, tile: int, reach: Tensor) -> _LaidOut:
        """`reach` is 0."""
        rows, size, hidden = states.shape
        tiles, across = reach.shape[1], -(-hidden // 2)
        powers = states.new_empty(rows, across, tiles * tile, dtype=torch.int64)
        if powers.numel():
            grid = (tiles, -(-across // 16), rows)
            launch(device.lay_out, grid, states, powers, reach, size, hidden, across, TILE=tile, FEATURES=16)
        return cls(powers, reach)


@dataclass(frozen=True)
class _Given:
    """What the backward pass has beside the states."""

    gradient: Tensor
    lse: Tensor
    delta: Tensor
    query: Tensor
    key: Tensor
    """in float32: as often as they are read, widening them there would cost more"""
    query_reach: Tensor
    key_reach: Tensor


@dataclass(frozen=True)
class _Piece:
    """Some queries."""

    first: int
    blocks: Blocks
    """whose tile 0 begins at `first`"""


class _Problem:
    """query, key [G, T or S, H], vector float32 [G, H or H + 1], value [G, S, D]"""

    def __init__(self, settings: Settings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> None:
        self.settings, self.states = settings, (query, key, vector, value)
        self.query, self.key, self.vector, self.value = query, key, vector, value
        self.rows, self.queries, self.hidden = query.shape
        self.keys, self.features = value.shape[1:]

    def laid_out(self) -> tuple[_LaidOut, _LaidOut]:
        tiles = -(-self.queries // HEIGHT), -(-self.keys // WIDTH)
        reach = self.query.new_zeros(self.rows * sum(tiles), dtype=torch.float32)
        of_query, of_key = reach.split([self.rows * count for count in tiles])
        queries = _LaidOut.of(self.query, HEIGHT, of_query.view(self.rows, tiles[0]))
        return queries, _LaidOut.of(self.key, WIDTH, of_key.view(self.rows, tiles[1]))

    def forward(self, queries: _LaidOut, keys: _LaidOut) -> tuple[Tensor, Tensor, Tensor | None]:
        """(context, lse, the energies if there is one piece)"""
        context = self.value.new_empty(self.rows, self.queries, self.features)
        lse = self.query.new_empty(self.rows, self.queries, dtype=torch.float32)
        pieces = self._pieces()
        for piece in pieces:
            energies, lists = self._energies(piece, queries, keys), piece.blocks.by_query
            if lse.numel():
                launch(
                    device.log_sum, (lists.tiles, self.rows),
                    energies, lse, lists.starts, lists.numbers, piece.first, self.queries, piece.blocks.count,
                    PARTS=len(energies), HEIGHT=HEIGHT, WIDTH=WIDTH,
                )  # fmt: skip
                launch(
                    device.weighted_sum, (lists.tiles, -(-self.features // SLICE), self.rows),
                    energies, self.value, lse, context, lists.starts, lists.others, lists.numbers, *self._sizes(piece),
                    **self._product_options,
                )  # fmt: skip
        return context, lse, energies[0] if len(pieces) == 1 else None

    def backward(self, given: _Given, energies: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(∂q', ∂k', ∂v, ∂value)"""
        laid = self.laid_out() if energies is None else ()
        by_query = torch.empty_like(self.query)
        total: tuple[Tensor, ...] = ()
        for piece in self._pieces():
            of_piece = self._energies(piece, *laid).sum(0) if energies is None else energies
            slopes, across, weights = self._energy_gradient(piece, given, of_piece)
            self._query_gradient(piece, given, across, by_query)
            by_value = self._value_gradient(piece, given.gradient, weights)
            found = (*self._key_gradient(piece, given, slopes), by_value)
            # Sums of many pieces are kept in float32.
            total = tuple(a.float().add_(b) for a, b in zip(total, found, strict=True)) if total else found
        by_key, by_vector, by_value = total
        return by_query, by_key.to(self.key.dtype), by_vector, by_value.to(self.value.dtype)

    # Steps

    def _pieces(self) -> list[_Piece]:
        pattern, position = self.settings.pattern, self.settings.position
        places = range(position, position + self.queries)
        most = max(self.hidden * self.queries // (HEIGHT * WIDTH), FEW // max(1, self.rows))
        return [
            _Piece(some.start - position, blocks_of(pattern, some, self.keys, HEIGHT, WIDTH, self.query.device))
            for some in pieces_of(pattern, places, self.keys, HEIGHT, WIDTH, most)
        ]

    def _sizes(self, piece: _Piece) -> tuple[int, ...]:
        return piece.first, self.queries, self.keys, self.features, piece.blocks.count

    def _energies(self, piece: _Piece, queries: _LaidOut, keys: _LaidOut) -> Tensor:
        """[parts, G, n, HEIGHT, WIDTH] in float32, which sum up to them; −inf where nothing may be seen"""
        lists, settings = piece.blocks.by_query, self.settings
        programs, across = piece.blocks.count * (HEIGHT // STRIP) * self.rows, queries.powers.shape[1]
        chunk = -(-across // max(1, min(MOST_PARTS, across, WARPS // max(1, programs))))
        shape = (-(-across // max(1, chunk)), self.rows, piece.blocks.count, HEIGHT, WIDTH)
        result = self.query.new_empty(shape, dtype=torch.float32)
        if not result.numel():
            return result
        visible, visible_rows = self._flat(settings.visible)
        allowed, allowed_rows = self._flat(settings.allowed)
        strides = [0, 0, 0]
        if settings.allowed is not None:
            strides = [allowed.stride(axis) if allowed.shape[axis] > 1 else 0 for axis in range(3)]
        launch(
            device.energies, (piece.blocks.count * (HEIGHT // STRIP), self.rows, len(result)),
            queries.powers, keys.powers, self.vector.view(torch.int64),
            self.query, self.key, self.vector, queries.reach, keys.reach, result,
            lists.owners, lists.others, lists.masks, lists.numbers, piece.blocks.table,
            visible, allowed, visible_rows, allowed_rows,
            piece.first, self.queries, self.keys, self.hidden, queries.reach.shape[1], keys.reach.shape[1],
            across, chunk, piece.blocks.count, self.vector.stride(0), *strides,
            ASM=settings.asm, VISIBLE=settings.visible is not None, ALLOWED=settings.allowed is not None,
            HEIGHT=HEIGHT, WIDTH=WIDTH, STRIP=STRIP, num_warps=1,
        )  # fmt: skip
        return result

    def _flat(self, given: Flat | None) -> tuple[Tensor, Tensor]:
        """(what it says, the row of it for each row of the batch); anything where nothing is given"""
        if given is None:
            return self.query, self.query
        return given.tensor.to(torch.uint8), given.numbers(self.rows)

    def _energy_gradient(self, piece: _Piece, given: _Given, energies: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(∂e [G, n, HEIGHT, WIDTH], the same [G, n, WIDTH, HEIGHT], weights [G, n, HEIGHT, WIDTH])"""
        lists = piece.blocks.by_query
        slopes, across = torch.empty_like(energies), energies.new_empty(*energies.shape[:2], WIDTH, HEIGHT)
        weights = torch.empty_like(slopes, dtype=self.value.dtype)
        if slopes.numel():
            launch(
                device.energy_gradient, (piece.blocks.count, self.rows),
                energies, self.value, given.gradient, given.lse, given.delta, slopes, across, weights,
                lists.owners, lists.others, lists.numbers, *self._sizes(piece),
                **self._product_options,
            )  # fmt: skip
        return slopes, across, weights

    def _value_gradient(self, piece: _Piece, gradient: Tensor, weights: Tensor) -> Tensor:
        lists, result = piece.blocks.by_key, torch.empty_like(self.value)
        if result.numel():
            launch(
                device.value_gradient, (lists.tiles, -(-self.features // SLICE), self.rows),
                weights, gradient, result, lists.starts, lists.others, lists.numbers, *self._sizes(piece),
                **self._product_options,
            )  # fmt: skip
        return result

    def _query_gradient(self, piece: _Piece, given: _Given, across: Tensor, result: Tensor) -> None:
        """∂q' of the piece, into `result`."""
        lists = piece.blocks.by_query
        if lists.tiles and self.rows:
            launch(
                device.state_gradient, (lists.tiles * (HEIGHT // STRIP), -(-self.hidden // 64), self.rows),
                given.query, given.key, self.vector, across, given.query_reach, given.key_reach, result, result,
                lists.starts, lists.others, lists.numbers,
                piece.first, 0, self.queries, self.keys, self.hidden,
                given.query_reach.shape[1], given.key_reach.shape[1], piece.blocks.count, self.vector.stride(0),
                VECTOR=False, OWN=HEIGHT, OTHER=WIDTH, **self._gradient_options,
            )  # fmt: skip

    def _key_gradient(self, piece: _Piece, given: _Given, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """(∂k', ∂v) as far as they come from the piece"""
        lists = piece.blocks.by_key
        strips = lists.tiles * (WIDTH // STRIP)
        result, vectors = torch.empty_like(self.key), self.vector.new_zeros(self.rows, strips, self.hidden)
        if vectors.numel():
            launch(
                device.state_gradient, (strips, -(-self.hidden // 64), self.rows),
                given.key, given.query, self.vector, slopes, given.key_reach, given.query_reach, result, vectors,
                lists.starts, lists.others, lists.numbers,
                0, piece.first, self.keys, self.queries, self.hidden,
                given.key_reach.shape[1], given.query_reach.shape[1], piece.blocks.count, self.vector.stride(0),
                VECTOR=True, OWN=WIDTH, OTHER=HEIGHT, **self._gradient_options,
            )  # fmt: skip
        return result, slopes.sum((1, 2, 3))[:, None] - 2 * vectors.sum(1)  # Σ ∂e tanh, tanh being 1 − 2r

    @property
    def _product_options(self) -> dict[str, Any]:
        options = {"PRECISION": self.settings.precision, "ASM": self.settings.asm}
        return {"FEATURES": SLICE, "HEIGHT": HEIGHT, "WIDTH": WIDTH, **options}

    @property
    def _gradient_options(self) -> dict[str, Any]:
        # More registers would be used if they were given, and fewer warps would have room.
        return {"ASM": self.settings.asm, "STRIP": STRIP, "FEATURES": 32, "num_warps": 1, "maxnreg": 128}
