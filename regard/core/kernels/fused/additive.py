"""Additive attention in a few kernels of our own: nothing of size [G, T, S, H] ever exists, forward or back.

Energies exist for as many queries at a time as keep them no larger than the queries themselves; if that is all of them,
the backward pass finds them kept, otherwise it computes them again. How it works and what bounds it: docs/additive.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.flat import Flat
from regard.core.kernels.fused import additive_device as device
from regard.core.kernels.fused.blocks import Blocks, Lists, blocks_of
from regard.core.kernels.tile_attention import refuse_second_order
from regard.core.patterns import Pattern

HEIGHT, WIDTH = 64, 64
"""of a block"""
LAID = 128
"""states laid out hidden-first are filled up to a multiple of this many, so that no load needs a mask"""
SLICE = 64
"""features of values that a program takes"""
SUMMED = 8
"""and features to a multiple of as many pairs as are summed up in float16"""


@dataclass(frozen=True)
class Settings:
    """What has no gradient."""

    pattern: Pattern
    position: int
    visible: Flat | None
    """bool [G, S]"""
    allowed: Flat | None
    """bool [G, T or 1, S or 1]"""
    exact: bool
    """in float32; otherwise tanh as the GPU has it, on float16"""
    asm: bool
    """by the GPU's own instructions; Triton's interpreter has none"""


def attend(settings: Settings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """q' [G, T, H], k' [G, S, H], v [G, H], value [G, S, D] → (context [G, T, D], lse [G, T]), differentiable."""
    found: tuple[Tensor, Tensor] = _Additive.apply(settings, query, key, vector, value)  # type: ignore[no-untyped-call]
    return found


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, settings: Settings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        query, key, value = (states.contiguous() for states in (query, key, value))
        contexts, sums, kept = [], [], []
        pieces = _pieces(settings, query, key)
        for some, of_some in pieces:
            problem = _Problem(of_some, query[:, some].contiguous(), key, vector, value)
            kept = [problem.energies()]
            context, lse = problem.forward(kept[0])
            contexts.append(context)
            sums.append(lse)
        context, lse = torch.cat(contexts, 1), torch.cat(sums, 1)
        ctx.settings = settings
        ctx.save_for_backward(query, key, vector, value, context, lse, *(kept if len(pieces) == 1 else ()))
        return context, lse

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, lse_gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        refuse_second_order()
        query, key, vector, value, context, lse, *kept = ctx.saved_tensors
        delta = (gradient.float() * context.float()).sum(-1) - lse_gradient.float()
        gradient = gradient.to(value.dtype)
        parts = []
        for some, of_some in _pieces(ctx.settings, query, key):
            problem = _Problem(of_some, query[:, some].contiguous(), key, vector, value)
            energies = kept[0].clone() if kept else problem.energies()
            inputs = (gradient[:, some].contiguous(), lse[:, some].contiguous(), delta[:, some].contiguous())
            parts.append(problem.backward(energies, *inputs))
        queries, keys, vectors, values = zip(*parts, strict=True)
        return None, torch.cat(queries, 1), _sum(keys), _sum(vectors).to(vector.dtype), _sum(values)


def _pieces(settings: Settings, query: Tensor, key: Tensor) -> list[tuple[slice, Settings]]:
    """Queries whose energies are together no larger than the queries, and the settings for them."""
    count = query.shape[1]
    rows = max(HEIGHT, query.shape[2] * count // max(1, key.shape[1]) // HEIGHT * HEIGHT)
    firsts = range(0, max(count, 1), rows)
    return [(slice(first, first + rows), _of_rows(settings, first, min(rows, count - first))) for first in firsts]


def _sum(parts: tuple[Tensor, ...]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _of_rows(settings: Settings, first: int, count: int) -> Settings:
    """The same for queries first … first + count − 1."""
    allowed = settings.allowed
    if allowed is not None and allowed.tensor.shape[1] > 1:
        allowed = Flat(allowed.tensor[:, first : first + count], allowed.index)
    return Settings(
        settings.pattern, settings.position + first, settings.visible, allowed, settings.exact, settings.asm
    )


class _Problem:
    """One problem, laid out for the device."""

    def __init__(self, settings: Settings, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> None:
        self.settings, self.query, self.key, self.value = settings, query, key, value
        self.rows, self.queries, self.hidden = query.shape
        self.keys, self.features = value.shape[1:]
        places = range(settings.position, settings.position + self.queries)
        self.blocks: Blocks = blocks_of(settings.pattern, places, self.keys, HEIGHT, WIDTH, query.device)
        self.far = query.new_zeros((), dtype=torch.int32)
        self.vector = vector.float().contiguous()
        self._visible = self._flat(settings.visible, torch.uint8)
        self._allowed = self._flat(settings.allowed, torch.uint8)

    # Layout

    def _flat(self, given: Flat | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """(what it says, the row of it for each row of the batch); anything where nothing is given"""
        if given is None:
            return self.far, self.far
        rows = torch.arange(self.rows, device=self.query.device) if given.index is None else given.index
        return given.tensor.to(dtype), rows

    def _laid_out(self, states: Tensor) -> Tensor:
        """[G, N, H] → hidden-first, packed or as e^{2x}"""
        rows, size, hidden = states.shape
        exact = self.settings.exact
        across = hidden if exact else _up(-(-hidden // 2), SUMMED)
        laid = states.new_empty(rows, across, _up(size, LAID), dtype=torch.float32 if exact else torch.int32)
        grid = (laid.shape[2] // 32, -(-across // 32), rows)
        device.lay_out[grid](
            states, laid, self.far, size, hidden, laid.shape[2], across, EXACT=exact, TILE=32, FEATURES=32
        )
        return laid

    def _vector(self) -> tuple[Tensor, Tensor]:
        """(v as the energies take it, by what their sum is multiplied)

        Packed, v is brought below 1, where float16 is at its best.
        """
        if self.settings.exact:
            return self.vector, self.vector.new_ones(())
        scale = self.vector.abs().amax().clamp(min=1e-30)
        half = (self.vector / scale).half()
        half = torch.nn.functional.pad(half, (0, 2 * _up(-(-self.hidden // 2), SUMMED) - self.hidden))
        return half.contiguous().view(torch.int32), scale

    @property
    def _precision(self) -> str:
        return "tf32x3" if self.settings.exact else "tf32"

    @property
    def _block(self) -> dict[str, int]:
        return {"HEIGHT": HEIGHT, "WIDTH": WIDTH}

    # Passes

    def energies(self) -> Tensor:
        """[G, n, HEIGHT, WIDTH] in float32, −inf where nothing may be seen"""
        blocks = self.blocks.by_query
        result = self.query.new_empty(self.rows, self.blocks.count, HEIGHT, WIDTH, dtype=torch.float32)
        if not result.numel():
            return result
        query, key = self._laid_out(self.query), self._laid_out(self.key)
        vector, scale = self._vector()
        visible, allowed = self._visible, self._allowed
        strides = [0, 0, 0]
        if self.settings.allowed is not None:
            strides = [allowed[0].stride(axis) if allowed[0].shape[axis] > 1 else 0 for axis in range(3)]
        device.energies[(self.blocks.count, self.rows)](
            query, key, vector, self.query, self.key, self.far, result,
            blocks.owners, blocks.others, blocks.masks, blocks.numbers, self.blocks.table,
            visible[0], allowed[0], visible[1], allowed[1],
            self.queries, self.keys, self.hidden, query.shape[2], key.shape[2], query.shape[1], self.blocks.count,
            vector.stride(0), scale, *strides,
            EXACT=self.settings.exact, ASM=self.settings.asm,
            VISIBLE=self.settings.visible is not None, ALLOWED=self.settings.allowed is not None, **self._block,
        )  # fmt: skip
        return result

    def forward(self, energies: Tensor) -> tuple[Tensor, Tensor]:
        """(context, lse)"""
        blocks = self.blocks.by_query
        context = self.value.new_empty(self.rows, self.queries, self.features)
        lse = self.query.new_empty(self.rows, self.queries, dtype=torch.float32)
        if lse.numel():
            device.weighted_sum[(blocks.tiles, -(-self.features // SLICE), self.rows)](
                energies, self.value, context, lse, blocks.starts, blocks.others, blocks.numbers,
                self.queries, self.keys, self.features, self.blocks.count,
                FEATURES=SLICE, PRECISION=self._precision, **self._block,
            )  # fmt: skip
        return context, lse

    def backward(
        self, energies: Tensor, gradient: Tensor, lse: Tensor, delta: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(∂q', ∂k', ∂v, ∂value); ∂e takes the place of the energies."""
        blocks, by_key = self.blocks.by_query, self.blocks.by_key
        weights = torch.empty_like(energies, dtype=self.value.dtype)
        sizes = (self.queries, self.keys, self.features, self.blocks.count)
        options = {"FEATURES": SLICE, "PRECISION": self._precision, **self._block}
        if energies.numel():
            device.energy_gradient[(self.blocks.count, self.rows)](
                energies, self.value, gradient, lse, delta, weights, blocks.owners, blocks.others, blocks.numbers,
                *sizes, **options,
            )  # fmt: skip
        value = torch.empty_like(self.value)
        if value.numel():
            device.value_gradient[(by_key.tiles, -(-self.features // SLICE), self.rows)](
                weights, gradient, value, by_key.starts, by_key.others, by_key.numbers, *sizes, **options
            )
        ready = self._natural()
        query, _ = self._state_gradient(ready, energies, blocks, of_keys=False)
        key, vectors = self._state_gradient(ready[::-1], energies, by_key, of_keys=True)
        return query, key, vectors, value

    def _natural(self) -> tuple[Tensor, Tensor]:
        """Queries and keys as they lie, packed [G, N, ⌈H / 2⌉], or as e^{2x}"""
        if self.settings.exact:
            far = device.FAR.value
            self.far = torch.stack([(x.abs() > far).any() for x in (self.query, self.key)]).any().to(torch.int32)
            query, key = ((2 * x.float().clamp(-far, far)).exp_() for x in (self.query, self.key))
            return query, key
        odd = self.hidden % 2
        query, key = (
            torch.nn.functional.pad(x.clamp(-60000, 60000).half(), (0, odd)).contiguous().view(torch.int32)
            for x in (self.query, self.key)
        )
        return query, key

    def _state_gradient(
        self, ready: tuple[Tensor, Tensor], slopes: Tensor, lists: Lists, of_keys: bool
    ) -> tuple[Tensor, Tensor]:
        """(∂ of the states that come first in `ready`, ∂v where those are the keys)"""
        raw = (self.key, self.query) if of_keys else (self.query, self.key)
        own, other = (WIDTH, HEIGHT) if of_keys else (HEIGHT, WIDTH)
        strides = (1, WIDTH) if of_keys else (WIDTH, 1)
        tiles = lists.tiles
        result = torch.empty_like(raw[0])
        vectors = self.vector.new_zeros(self.rows, tiles, self.hidden)
        sizes = (raw[0].shape[1], raw[1].shape[1], self.hidden)
        shape = {"AREA": HEIGHT * WIDTH, "OWN": own, "OTHER": other, "VECTOR": of_keys, "ASM": self.settings.asm}
        last = (self.vector.stride(0), self.blocks.count, *strides)
        outs = (self.vector, slopes, result, vectors, lists.starts, lists.others, lists.numbers)
        if tiles and self.rows:
            if self.settings.exact:
                grid = (tiles, -(-self.hidden // 64), self.rows)
                device.exact_gradient[grid](*ready, *raw, self.far, *outs, *sizes, *last, FEATURES=64, **shape)
            else:
                half = ready[0].shape[2]
                grid = (tiles, -(-half // 32), self.rows)
                device.packed_gradient[grid](*ready, *outs, *sizes, half, *last, FEATURES=32, **shape)
        return result, vectors.sum(1)


def _up(number: int, to: int) -> int:
    """The next multiple of `to`."""
    return -(-number // to) * to
