"""Additive attention in Triton kernels: no tensor of size [G, T, S, H] ever exists, forward or backward.

Energies are computed for so many queries at a time (a *piece*) that they take no more memory than the states of all
queries. If one piece has all queries, its energies are saved for the backward pass, otherwise they are recomputed. How
it works and what limits its speed: docs/additive.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.core.kernels.flat import FlatRows
from regard.core.kernels.gpu import additive_device
from regard.core.kernels.gpu import additive_state_device as state_device
from regard.core.kernels.gpu.blocks import HEIGHT, WIDTH, BlockLists, Lists, blocks_of, pieces_of
from regard.core.kernels.gpu.delta import delta_of
from regard.core.kernels.gpu.launch import compile_ahead, launch, mask_arguments
from regard.core.patterns import Pattern
from regard.runtime.device_cache import device_cache
from regard.runtime.device_guard import device_guard

STRIP = 16  # states of a block that a warp computes
VALUE_FEATURES = 64  # features of values that a program computes
ENOUGH_WARPS = 4096
"""warps that keep a GPU busy; with fewer blocks, the energies are computed in several parts, which are summed"""
MAX_PARTS = 4
MIN_PIECE_BLOCKS = 512
"""a piece may have this many blocks, over all rows, however short the queries: 8 MiB of energies, in parts 16"""
_cached_blocks = device_cache(maxsize=256, reason="listing the blocks of a long text takes milliseconds")(blocks_of)


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
    """Return (context [G, T, D], lse [G, T]), differentiable. The inputs are q' [G, T, H], k' [G, S, H], v [G, H] and
    value [G, S, D]."""
    _prepare(settings, query, key, vector, value)
    with device_guard(query.device):
        outputs: tuple[Tensor, Tensor] = _Additive.apply(settings, query, key, vector, value)  # type: ignore[no-untyped-call]
    return outputs


def _prepare(settings: AdditiveSettings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> None:
    """Compile all kernels of a new combination, also those of its backward pass if it can have one."""
    trains = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, vector, value))
    kinds = settings.visible is None, settings.allowed is None, settings.precision, trains

    def launch_all() -> None:
        """Launch every kernel once, forward and backward, for the first row of the batch."""
        problem = _AdditiveProblem.of(settings, query[:1], key[:1], vector.float()[:1], value[:1])
        context, lse, *saved = problem.forward()
        if trains:
            problem.backward(context, lse, delta_of(context, context, lse), *saved)

    combination = ("additive", settings.pattern, query.dtype, query.shape[-1], value.shape[-1], *kinds)
    compile_ahead(combination, query.device, launch_all)


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, settings: AdditiveSettings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        problem = _AdditiveProblem.of(settings, query, key, vector, value)
        context, lse, *saved = problem.forward()
        ctx.settings, ctx.dtype = settings, vector.dtype
        ctx.save_for_backward(problem.query, problem.key, problem.vector, problem.value, context, lse, *saved)
        return context, lse

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, lse_gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        refuse_second_order()
        query, key, vector, value, context, lse, *saved = ctx.saved_tensors
        problem = _AdditiveProblem(ctx.settings, query, key, vector, value)
        gradient = gradient.to(value.dtype).contiguous()
        grads = problem.backward(gradient, lse, delta_of(gradient, context, lse_gradient), *saved)
        grad_query, grad_key, grad_vector, grad_value = grads
        return None, grad_query, grad_key, grad_vector.to(ctx.dtype), grad_value


def _pad_to_even(vector: Tensor) -> Tensor:
    """Return v [G, H] with an even number of features and an even stride; all rows may share memory (stride 0)."""
    odd = vector.shape[1] % 2
    if odd or vector.stride(1) != 1 or vector.stride(0) % 2:
        return pad(vector, (0, odd)).contiguous()
    return vector


class _QueryPiece(NamedTuple):
    """A range of queries with its blocks."""

    first: int
    blocks: BlockLists  # tile 0 of queries begins at `first`


class _Side(NamedTuple):
    """The queries or the keys of a piece, as the gradient of one needs both."""

    lists: Lists
    tile: int
    first: int
    states: Tensor  # in float32: the kernel reads them so often that converting them there would cost more
    max_abs: Tensor


class _AdditiveProblem:
    """The states of a call: query, key [G, T or S, H], vector float32 [G, H or H + 1], value [G, S, D]."""

    def __init__(self, settings: AdditiveSettings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> None:
        self.settings = settings
        self.query, self.key, self.vector, self.value = query, key, vector, value
        self.rows, self.queries, self.hidden = query.shape
        self.keys, self.features = value.shape[1:]

    @classmethod
    def of(
        cls, settings: AdditiveSettings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor
    ) -> _AdditiveProblem:
        """Bring states of any layout and a vector of any dtype into the form that the kernels expect."""
        return cls(settings, query.contiguous(), key.contiguous(), _pad_to_even(vector.float()), value.contiguous())

    def forward(self) -> tuple[Tensor, ...]:
        """Return (context, lse, the largest |q'| and |k'| of each tile, and the energies if there is one piece)."""
        context = self.value.new_empty(self.rows, self.queries, self.features)
        lse = self.query.new_empty(self.rows, self.queries, dtype=torch.float32)
        pieces, hidden_first = self._pieces(), self._hidden_first()
        for piece in pieces:
            energies, lists = self._energies(piece, *hidden_first), piece.blocks.by_query
            launch(
                additive_device.log_sum, (lists.tiles, self.rows),
                energies, lse, lists.starts, lists.numbers, piece.first, self.queries, piece.blocks.count,
                PARTS=len(energies), HEIGHT=HEIGHT, WIDTH=WIDTH,
            )  # fmt: skip
            grid = (lists.tiles, -(-self.features // VALUE_FEATURES), self.rows)
            tensors = energies, self.value, lse, context, lists.starts, lists.others, lists.numbers
            self._launch(additive_device.weighted_sum, grid, piece, *tensors)
        return context, lse, *hidden_first[2:], *([energies[0]] if len(pieces) == 1 else [])

    def backward(
        self, gradient: Tensor, lse: Tensor, delta: Tensor, query_max_abs: Tensor, key_max_abs: Tensor, *saved: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return (∂q', ∂k', ∂v, ∂value), given ∂c, lse, δ and what else `forward` returned."""
        hidden_first = () if saved else self._hidden_first()
        grad_query, query, key = torch.empty_like(self.query), self.query.float(), self.key.float()
        total: tuple[Tensor, ...] = ()
        for piece in self._pieces():
            energies = saved[0] if saved else self._energies(piece, *hidden_first).sum(0)
            queries = _Side(piece.blocks.by_query, HEIGHT, piece.first, query, query_max_abs)
            keys = _Side(piece.blocks.by_key, WIDTH, 0, key, key_max_abs)
            grad_energies, transposed, weights = self._energy_gradient(piece, energies, gradient, lse, delta)
            self._state_gradient(piece, queries, keys, transposed, grad_query)
            grad_value = self._value_gradient(piece, gradient, weights)
            grad_key = torch.empty_like(self.key)
            sums = self.vector.new_zeros(self.rows, keys.lists.tiles * (WIDTH // STRIP), self.hidden)
            self._state_gradient(piece, keys, queries, grad_energies, grad_key, sums)
            grad_vector = grad_energies.sum((1, 2, 3))[:, None] - 2 * sums.sum(1)  # Σ ∂e tanh with tanh = 1 − 2r
            grads = grad_key, grad_vector, grad_value
            # Several pieces are summed in float32.
            total = tuple(a.float().add_(b) for a, b in zip(total, grads, strict=True)) if total else grads
        grad_key, grad_vector, grad_value = total
        return grad_query, grad_key.to(self.key.dtype), grad_vector, grad_value.to(self.value.dtype)

    # Steps

    def _pieces(self) -> list[_QueryPiece]:
        pattern, position = self.settings.pattern, self.settings.position
        positions = range(position, position + self.queries)
        sizes = self.keys, HEIGHT, WIDTH, self.query.device
        blocks = _cached_blocks(pattern, positions, *sizes)
        max_blocks = max(self.hidden * self.queries // (HEIGHT * WIDTH), MIN_PIECE_BLOCKS // max(1, self.rows))
        if blocks.count <= max_blocks:
            return [_QueryPiece(0, blocks)]
        pieces = pieces_of(blocks, positions, max_blocks)
        return [_QueryPiece(piece.start - position, _cached_blocks(pattern, piece, *sizes)) for piece in pieces]

    def _hidden_first(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return e^{2x} of queries and of keys in the hidden-first layout of the energies kernel, int64 [G, ⌈H / 2⌉,
        tiles · size] of two float32 each, and the largest |x| of each of their tiles, [G, tiles]."""
        tiles, pairs = (-(-self.queries // HEIGHT), -(-self.keys // WIDTH)), -(-self.hidden // 2)
        joint = self.query.new_zeros(self.rows * sum(tiles), dtype=torch.float32)
        of_query, of_key = joint.split([self.rows * count for count in tiles])
        max_abs = of_query.view(self.rows, tiles[0]), of_key.view(self.rows, tiles[1])
        exponentials = []
        for states, count, tile, largest in zip((self.query, self.key), tiles, (HEIGHT, WIDTH), max_abs, strict=True):
            result = states.new_empty(self.rows, pairs, count * tile, dtype=torch.int64)
            sizes, grid = (states.shape[1], self.hidden, pairs), (count, -(-pairs // 16), self.rows)
            launch(additive_device.lay_out, grid, states, result, largest, *sizes, TILE=tile, FEATURES=16)
            exponentials.append(result)
        return exponentials[0], exponentials[1], *max_abs

    def _energies(
        self, piece: _QueryPiece, queries: Tensor, keys: Tensor, query_max_abs: Tensor, key_max_abs: Tensor
    ) -> Tensor:
        """Return the energies in parts that sum up to them, float32 [parts, G, n, HEIGHT, WIDTH]; −inf where masked."""
        lists, settings, strips = piece.blocks.by_query, self.settings, piece.blocks.count * (HEIGHT // STRIP)
        pairs = queries.shape[1]
        chunk = -(-pairs // max(1, min(MAX_PARTS, pairs, ENOUGH_WARPS // max(1, strips * self.rows))))
        shape = (-(-pairs // max(1, chunk)), self.rows, piece.blocks.count, HEIGHT, WIDTH)
        result = self.query.new_empty(shape, dtype=torch.float32)
        visible, visible_rows = mask_arguments(settings.visible, self.rows, self.query)
        allowed, allowed_rows = mask_arguments(settings.allowed, self.rows, self.query)
        strides = [0, 0, 0]
        if settings.allowed is not None:
            strides = [allowed.stride(axis) if allowed.shape[axis] > 1 else 0 for axis in range(3)]
        launch(
            additive_device.energies, (strips, self.rows, len(result)),
            queries, keys, self.vector.view(torch.int64), self.query, self.key, self.vector,
            query_max_abs, key_max_abs, result,
            lists.owners, lists.others, lists.masks, lists.numbers, piece.blocks.table,
            visible, allowed, visible_rows, allowed_rows,
            piece.first, self.queries, self.keys, self.hidden, query_max_abs.shape[1], key_max_abs.shape[1],
            pairs, chunk, piece.blocks.count, self.vector.stride(0), *strides,
            ASM=settings.asm, VISIBLE=settings.visible is not None, ALLOWED=settings.allowed is not None,
            HEIGHT=HEIGHT, WIDTH=WIDTH, STRIP=STRIP, num_warps=1,
        )  # fmt: skip
        return result

    def _energy_gradient(
        self, piece: _QueryPiece, energies: Tensor, gradient: Tensor, lse: Tensor, delta: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return (∂e [G, n, HEIGHT, WIDTH], its transpose [G, n, WIDTH, HEIGHT], weights [G, n, HEIGHT, WIDTH])."""
        lists = piece.blocks.by_query
        results = (
            torch.empty_like(energies),
            energies.new_empty(*energies.shape[:2], WIDTH, HEIGHT),
            torch.empty_like(energies, dtype=self.value.dtype),
        )
        tensors = energies, self.value, gradient, lse, delta, *results, lists.owners, lists.others, lists.numbers
        self._launch(additive_device.energy_gradient, (piece.blocks.count, self.rows), piece, *tensors)
        return results

    def _value_gradient(self, piece: _QueryPiece, gradient: Tensor, weights: Tensor) -> Tensor:
        lists, result = piece.blocks.by_key, torch.empty_like(self.value)
        grid = (lists.tiles, -(-self.features // VALUE_FEATURES), self.rows)
        tensors = weights, gradient, result, lists.starts, lists.others, lists.numbers
        self._launch(additive_device.value_gradient, grid, piece, *tensors)
        return result

    def _launch(self, kernel: Any, grid: tuple[int, ...], piece: _QueryPiece, *tensors: Tensor) -> None:
        """Launch a kernel that multiplies blocks with values or their gradients."""
        launch(
            kernel, grid, *tensors, piece.first, self.queries, self.keys, self.features, piece.blocks.count,
            FEATURES=VALUE_FEATURES, HEIGHT=HEIGHT, WIDTH=WIDTH,
            PRECISION=self.settings.precision, ASM=self.settings.asm,
        )  # fmt: skip

    def _state_gradient(
        self, piece: _QueryPiece, own: _Side, other: _Side, grad_energies: Tensor, result: Tensor,
        sums: Tensor | None = None,
    ) -> None:  # fmt: skip
        """Write ∂q' or ∂k' of the piece, whichever is `own`, into `result`, and Σ ∂e r of each strip into `sums`."""
        # Without a limit the compiler uses more registers, and fewer warps fit on a multiprocessor.
        options = {"STRIP": STRIP, "FEATURES": 32, "num_warps": 1, "maxnreg": 128}
        launch(
            state_device.state_gradient,
            (own.lists.tiles * (own.tile // STRIP), -(-self.hidden // 64), self.rows),
            own.states, other.states, self.vector, grad_energies, own.max_abs, other.max_abs,
            result, result if sums is None else sums, own.lists.starts, own.lists.others, own.lists.numbers,
            own.first, other.first, own.states.shape[1], other.states.shape[1], self.hidden,
            own.max_abs.shape[1], other.max_abs.shape[1], piece.blocks.count, self.vector.stride(0),
            VECTOR=sums is not None, OWN=own.tile, OTHER=other.tile, ASM=self.settings.asm, **options,
        )  # fmt: skip
