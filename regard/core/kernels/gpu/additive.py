"""Additive attention in Triton kernels: no tensor of size [G, T, S, H] ever exists, forward or backward.

Energies are computed for so many queries at a time (a *piece*) that they take no more memory than the states of all
queries. If one piece has all queries, its energies are saved for the backward pass, otherwise they are recomputed. How
it works and what limits its speed: docs/additive.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.core.kernels.flat import FlatRows
from regard.core.kernels.gpu import additive_device as device
from regard.core.kernels.gpu import additive_state_device as state_device
from regard.core.kernels.gpu.blocks import BlockLists, blocks_of, pieces_of
from regard.core.kernels.gpu.delta import delta_of
from regard.core.kernels.gpu.device import compile_ahead, launch
from regard.core.patterns import Pattern
from regard.runtime.device_guard import device_guard

HEIGHT, WIDTH = 64, 64
"""queries and keys of a block"""
STRIP = 16
"""states of a block that a warp computes"""
VALUE_FEATURES = 64
"""features of values that a program computes"""
ENOUGH_WARPS = 4096
"""warps that keep a GPU busy; with fewer blocks, the energies are computed in several parts, which are summed"""
MAX_PARTS = 4
MIN_PIECE_BLOCKS = 512
"""a piece may have this many blocks, over all rows, however short the queries: 8 MiB of energies, in parts 16"""


@dataclass(frozen=True)
class AdditiveSettings:
    """Everything that a call needs and that has no gradient."""

    pattern: Pattern
    position: int
    visible: FlatRows | None
    """bool [G, S]"""
    allowed: FlatRows | None
    """bool [G, T or 1, S or 1]"""
    precision: str
    """of float32 products: "tf32x3", or "pairs" of bfloat16, better than TF32; 16-bit products have no such choice"""
    asm: bool
    """whether to use inline assembly, which Triton's interpreter does not have"""


def attend(
    settings: AdditiveSettings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor
) -> tuple[Tensor, Tensor]:
    """Return (context [G, T, D], lse [G, T]), differentiable.

    The inputs are q' [G, T, H], k' [G, S, H], v [G, H] and value [G, S, D].
    """
    _prepare(settings, query, key, vector, value)
    with device_guard(query.device):
        outputs: tuple[Tensor, Tensor] = _Additive.apply(settings, query, key, vector, value)  # type: ignore[no-untyped-call]
    return outputs


def _prepare(settings: AdditiveSettings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> None:
    """Compile all kernels of a new combination, also those of its backward pass if it can have one."""
    states = query, key, vector, value
    trains = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in states)
    kinds = settings.visible is None, settings.allowed is None, settings.precision, trains
    compile_ahead(
        ("additive", settings.pattern, query.dtype, query.shape[-1], value.shape[-1], *kinds),
        query.device,
        lambda: _launch_all(settings, *states, trains),
    )


def _launch_all(
    settings: AdditiveSettings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor, backward: bool
) -> None:
    """Launch every kernel once, forward and backward, for the first row of the batch."""
    query, key, value = (states[:1].contiguous() for states in (query, key, value))
    problem = _AdditiveProblem(settings, query, key, _pad_to_even(vector.float())[:1], value)
    queries, keys = problem.hidden_first()
    context, lse, energies = problem.forward(queries, keys)
    if backward:
        float32_states = problem.query.float(), problem.key.float()
        inputs = _AdditiveBackwardInputs(
            context, lse, delta_of(context, context, lse), *float32_states, queries.max_abs, keys.max_abs
        )
        problem.backward(inputs, energies)


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, settings: AdditiveSettings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        query, key, value = (x.contiguous() for x in (query, key, value))
        problem = _AdditiveProblem(settings, query, key, _pad_to_even(vector.float()), value)
        queries, keys = problem.hidden_first()
        context, lse, energies = problem.forward(queries, keys)
        ctx.settings, ctx.dtype = settings, vector.dtype
        saved = [] if energies is None else [energies]
        ctx.save_for_backward(*problem.states, context, lse, queries.max_abs, keys.max_abs, *saved)
        return context, lse

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, lse_gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        refuse_second_order()
        query, key, vector, value, context, lse, query_max_abs, key_max_abs, *saved = ctx.saved_tensors
        problem = _AdditiveProblem(ctx.settings, query, key, vector, value)
        gradient = gradient.to(value.dtype).contiguous()
        delta = delta_of(gradient, context, lse_gradient)
        inputs = _AdditiveBackwardInputs(gradient, lse, delta, query.float(), key.float(), query_max_abs, key_max_abs)
        grad_query, grad_key, grad_vector, grad_value = problem.backward(inputs, saved[0] if saved else None)
        return None, grad_query, grad_key, grad_vector.to(ctx.dtype), grad_value


def _pad_to_even(vector: Tensor) -> Tensor:
    """Return v [G, H] with an even number of features and an even stride; all rows may share memory (stride 0)."""
    odd = vector.shape[1] % 2
    if odd or vector.stride(1) != 1 or vector.stride(0) % 2:
        return pad(vector, (0, odd)).contiguous()
    return vector


@dataclass(frozen=True)
class _HiddenFirst:
    """States in the hidden-first layout of the energies kernel."""

    exponentials: Tensor
    """e^{2x}, int64 [G, ⌈H / 2⌉, tiles · size], each of two float32"""
    max_abs: Tensor
    """the largest |x| of each tile, [G, tiles]"""

    @classmethod
    def of(cls, states: Tensor, tile: int, max_abs: Tensor) -> _HiddenFirst:
        """Convert states [G, N, H]; `max_abs` is a tensor of zeros [G, tiles] to write to."""
        rows, size, hidden = states.shape
        tiles, pairs = max_abs.shape[1], -(-hidden // 2)
        exponentials = states.new_empty(rows, pairs, tiles * tile, dtype=torch.int64)
        if exponentials.numel():
            grid = (tiles, -(-pairs // 16), rows)
            launch(device.lay_out, grid, states, exponentials, max_abs, size, hidden, pairs, TILE=tile, FEATURES=16)
        return cls(exponentials, max_abs)


@dataclass(frozen=True)
class _AdditiveBackwardInputs:
    """The inputs of the backward pass besides the states."""

    gradient: Tensor
    lse: Tensor
    delta: Tensor
    query: Tensor
    key: Tensor
    """in float32: the kernel reads them so often that converting them there would cost more"""
    query_max_abs: Tensor
    key_max_abs: Tensor


@dataclass(frozen=True)
class _QueryPiece:
    """A range of queries with its blocks."""

    first: int
    blocks: BlockLists
    """tile 0 of queries begins at `first`"""


class _AdditiveProblem:
    """The states of a call: query, key [G, T or S, H], vector float32 [G, H or H + 1], value [G, S, D]."""

    def __init__(self, settings: AdditiveSettings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> None:
        self.settings, self.states = settings, (query, key, vector, value)
        self.query, self.key, self.vector, self.value = query, key, vector, value
        self.rows, self.queries, self.hidden = query.shape
        self.keys, self.features = value.shape[1:]

    def hidden_first(self) -> tuple[_HiddenFirst, _HiddenFirst]:
        tiles = -(-self.queries // HEIGHT), -(-self.keys // WIDTH)
        max_abs = self.query.new_zeros(self.rows * sum(tiles), dtype=torch.float32)
        of_query, of_key = max_abs.split([self.rows * count for count in tiles])
        queries = _HiddenFirst.of(self.query, HEIGHT, of_query.view(self.rows, tiles[0]))
        return queries, _HiddenFirst.of(self.key, WIDTH, of_key.view(self.rows, tiles[1]))

    def forward(self, queries: _HiddenFirst, keys: _HiddenFirst) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return (context, lse, the energies if there is one piece)."""
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
                    device.weighted_sum, (lists.tiles, -(-self.features // VALUE_FEATURES), self.rows),
                    energies, self.value, lse, context, lists.starts, lists.others, lists.numbers, *self._sizes(piece),
                    **self._product_options,
                )  # fmt: skip
        return context, lse, energies[0] if len(pieces) == 1 else None

    def backward(
        self, inputs: _AdditiveBackwardInputs, energies: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return (∂q', ∂k', ∂v, ∂value)."""
        states = self.hidden_first() if energies is None else ()
        grad_query = torch.empty_like(self.query)
        total: tuple[Tensor, ...] = ()
        for piece in self._pieces():
            of_piece = self._energies(piece, *states).sum(0) if energies is None else energies
            grad_energies, transposed, weights = self._energy_gradient(piece, inputs, of_piece)
            self._query_gradient(piece, inputs, transposed, grad_query)
            grad_value = self._value_gradient(piece, inputs.gradient, weights)
            grads = (*self._key_gradient(piece, inputs, grad_energies), grad_value)
            # Several pieces are summed in float32.
            total = tuple(a.float().add_(b) for a, b in zip(total, grads, strict=True)) if total else grads
        grad_key, grad_vector, grad_value = total
        return grad_query, grad_key.to(self.key.dtype), grad_vector, grad_value.to(self.value.dtype)

    # Steps

    def _pieces(self) -> list[_QueryPiece]:
        pattern, position = self.settings.pattern, self.settings.position
        positions = range(position, position + self.queries)
        max_blocks = max(self.hidden * self.queries // (HEIGHT * WIDTH), MIN_PIECE_BLOCKS // max(1, self.rows))
        return [
            _QueryPiece(piece.start - position, blocks_of(pattern, piece, self.keys, HEIGHT, WIDTH, self.query.device))
            for piece in pieces_of(pattern, positions, self.keys, HEIGHT, WIDTH, max_blocks)
        ]

    def _sizes(self, piece: _QueryPiece) -> tuple[int, ...]:
        return piece.first, self.queries, self.keys, self.features, piece.blocks.count

    def _energies(self, piece: _QueryPiece, queries: _HiddenFirst, keys: _HiddenFirst) -> Tensor:
        """Return the energies in parts that sum up to them, float32 [parts, G, n, HEIGHT, WIDTH]; −inf where masked."""
        lists, settings = piece.blocks.by_query, self.settings
        programs, pairs = piece.blocks.count * (HEIGHT // STRIP) * self.rows, queries.exponentials.shape[1]
        chunk = -(-pairs // max(1, min(MAX_PARTS, pairs, ENOUGH_WARPS // max(1, programs))))
        shape = (-(-pairs // max(1, chunk)), self.rows, piece.blocks.count, HEIGHT, WIDTH)
        result = self.query.new_empty(shape, dtype=torch.float32)
        if not result.numel():
            return result
        visible, visible_rows = self._mask_and_rows(settings.visible)
        allowed, allowed_rows = self._mask_and_rows(settings.allowed)
        strides = [0, 0, 0]
        if settings.allowed is not None:
            strides = [allowed.stride(axis) if allowed.shape[axis] > 1 else 0 for axis in range(3)]
        launch(
            device.energies, (piece.blocks.count * (HEIGHT // STRIP), self.rows, len(result)),
            queries.exponentials, keys.exponentials, self.vector.view(torch.int64),
            self.query, self.key, self.vector, queries.max_abs, keys.max_abs, result,
            lists.owners, lists.others, lists.masks, lists.numbers, piece.blocks.table,
            visible, allowed, visible_rows, allowed_rows,
            piece.first, self.queries, self.keys, self.hidden, queries.max_abs.shape[1], keys.max_abs.shape[1],
            pairs, chunk, piece.blocks.count, self.vector.stride(0), *strides,
            ASM=settings.asm, VISIBLE=settings.visible is not None, ALLOWED=settings.allowed is not None,
            HEIGHT=HEIGHT, WIDTH=WIDTH, STRIP=STRIP, num_warps=1,
        )  # fmt: skip
        return result

    def _mask_and_rows(self, mask: FlatRows | None) -> tuple[Tensor, Tensor]:
        """Return (the mask, its row for each row of the batch), or placeholders without a mask."""
        if mask is None:
            return self.query, self.query
        return mask.tensor.to(torch.uint8), mask.numbers(self.rows)

    def _energy_gradient(
        self, piece: _QueryPiece, inputs: _AdditiveBackwardInputs, energies: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return (∂e [G, n, HEIGHT, WIDTH], its transpose [G, n, WIDTH, HEIGHT], weights [G, n, HEIGHT, WIDTH])."""
        lists = piece.blocks.by_query
        grad_energies, transposed = torch.empty_like(energies), energies.new_empty(*energies.shape[:2], WIDTH, HEIGHT)
        weights = torch.empty_like(grad_energies, dtype=self.value.dtype)
        if grad_energies.numel():
            launch(
                device.energy_gradient, (piece.blocks.count, self.rows),
                energies, self.value, inputs.gradient, inputs.lse, inputs.delta, grad_energies, transposed, weights,
                lists.owners, lists.others, lists.numbers, *self._sizes(piece),
                **self._product_options,
            )  # fmt: skip
        return grad_energies, transposed, weights

    def _value_gradient(self, piece: _QueryPiece, gradient: Tensor, weights: Tensor) -> Tensor:
        lists, result = piece.blocks.by_key, torch.empty_like(self.value)
        if result.numel():
            launch(
                device.value_gradient, (lists.tiles, -(-self.features // VALUE_FEATURES), self.rows),
                weights, gradient, result, lists.starts, lists.others, lists.numbers, *self._sizes(piece),
                **self._product_options,
            )  # fmt: skip
        return result

    def _query_gradient(
        self, piece: _QueryPiece, inputs: _AdditiveBackwardInputs, transposed: Tensor, result: Tensor
    ) -> None:
        """Write ∂q' of the piece into `result`."""
        lists = piece.blocks.by_query
        if lists.tiles and self.rows:
            launch(
                state_device.state_gradient, (lists.tiles * (HEIGHT // STRIP), -(-self.hidden // 64), self.rows),
                inputs.query, inputs.key, self.vector, transposed, inputs.query_max_abs, inputs.key_max_abs,
                result, result, lists.starts, lists.others, lists.numbers,
                piece.first, 0, self.queries, self.keys, self.hidden,
                inputs.query_max_abs.shape[1], inputs.key_max_abs.shape[1], piece.blocks.count, self.vector.stride(0),
                VECTOR=False, OWN=HEIGHT, OTHER=WIDTH, **self._gradient_options,
            )  # fmt: skip

    def _key_gradient(
        self, piece: _QueryPiece, inputs: _AdditiveBackwardInputs, grad_energies: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the piece's contribution to (∂k', ∂v)."""
        lists = piece.blocks.by_key
        strips = lists.tiles * (WIDTH // STRIP)
        result, vectors = torch.empty_like(self.key), self.vector.new_zeros(self.rows, strips, self.hidden)
        if vectors.numel():
            launch(
                state_device.state_gradient, (strips, -(-self.hidden // 64), self.rows),
                inputs.key, inputs.query, self.vector, grad_energies, inputs.key_max_abs, inputs.query_max_abs,
                result, vectors, lists.starts, lists.others, lists.numbers,
                0, piece.first, self.keys, self.queries, self.hidden,
                inputs.key_max_abs.shape[1], inputs.query_max_abs.shape[1], piece.blocks.count, self.vector.stride(0),
                VECTOR=True, OWN=WIDTH, OTHER=HEIGHT, **self._gradient_options,
            )  # fmt: skip
        return result, grad_energies.sum((1, 2, 3))[:, None] - 2 * vectors.sum(1)  # Σ ∂e tanh with tanh = 1 − 2r

    @property
    def _product_options(self) -> dict[str, Any]:
        options = {"PRECISION": self.settings.precision, "ASM": self.settings.asm}
        return {"FEATURES": VALUE_FEATURES, "HEIGHT": HEIGHT, "WIDTH": WIDTH, **options}

    @property
    def _gradient_options(self) -> dict[str, Any]:
        # Without a limit the compiler uses more registers, and fewer warps fit on a multiprocessor.
        return {"ASM": self.settings.asm, "STRIP": STRIP, "FEATURES": 32, "num_warps": 1, "maxnreg": 128}
