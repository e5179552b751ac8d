"""A KV cache: keys that are projected once and cached with their values, to be read step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.core import checks
from regard.core import request as requests
from regard.core.kernels.few_queries import PreparedKeys, unsupported
from regard.core.local import LocalPredictive
from regard.core.normalizers import Normalizer
from regard.core.observe import check_extras, run_with_outputs
from regard.core.patterns import Full, Pattern
from regard.core.plan import choose
from regard.core.request import CachedStates, CallOptions, Lengths, Request
from regard.core.result import Result
from regard.core.scores import Score, at_least_float32
from regard.runtime.precision import autocast_dtype
from regard.runtime.transforms import active_transform

Mode = tuple[bool, bool, torch.dtype | None]  # (gradients are recorded, inference mode, the dtype of autocast or None)


class AttentionModule(Protocol):
    """The attention that a memory is read with: an `Attention`."""

    @property
    def score(self) -> Score: ...
    @property
    def pattern(self) -> Pattern | LocalPredictive: ...
    @property
    def active_normalizer(self) -> Normalizer: ...
    @property
    def active_dropout(self) -> float: ...


@dataclass(frozen=True)
class Memory:
    """The keys and values of an `Attention`. It is immutable: `select`, `repeat` and `append` return a new one."""

    owner: AttentionModule
    key: Tensor
    """k' [..., S, D]: the keys after the score's projection, finite at padding"""
    value: Tensor
    """[..., S, Dv], finite at padding"""
    lengths: Tensor | None
    """int64, broadcasts to the leading dims; None: all keys are real"""
    change: Callable[[Tensor], Tensor] | None = None
    """applied to the weights [..., T, S] of every read before the values are summed; None: nothing"""
    preparation: tuple[Mode, CachedStates] | None = field(default=None, repr=False, compare=False)
    """what `prepare` computed, and its mode; not used in other modes, in some of which autograd records nothing"""

    @classmethod
    def of(cls, owner: AttentionModule, key: Tensor, value: Tensor, lengths: Lengths | None) -> Memory:
        """Project keys and cache them. Padding is zeroed before, so that it reaches no parameter's gradient."""
        checks.states("key", key, owner.score.expects()[1])
        key, value, counts = zero_padding(key, value, lengths)
        leading = checks.common_leading(key=key, value=value)
        key, value = (x.expand(*leading, *x.shape[-2:]) for x in (key, value))
        return cls.from_checked(owner, key, value, counts)

    @classmethod
    def from_checked(cls, owner: AttentionModule, key: Tensor, value: Tensor, counts: Tensor | None) -> Memory:
        """Project and cache keys and values whose padding is finite, and which share their leading dims."""
        side = owner.score.key_side(key) if owner.score.has_terms else key
        return cls(owner, side, value, counts)

    def read(
        self,
        query: Tensor,
        *,
        position: int = 0,
        bias: Tensor | None = None,
        allowed: Tensor | None = None,
        weights: bool = False,
        top: int | None = None,
        lse: bool = False,
        generator: torch.Generator | None = None,
    ) -> Result:
        """Compute `attention` of query [..., T, Dq], the first at `position`, over the cached keys."""
        if self.change is not None:
            return self._read_changed(query, position=position, bias=bias, allowed=allowed, generator=generator)
        request = self.request(query, position=position, bias=bias, allowed=allowed, generator=generator)
        check_extras(top, lse, request.normalizer)
        return run_with_outputs(choose(request), weights, top, lse)

    def request(
        self,
        query: Tensor,
        *,
        position: int = 0,
        bias: Tensor | None = None,
        allowed: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Request:
        """Return the checked arguments of a read, without `change`."""
        checks.states("query", query)
        if query.dim() < self.key.dim():
            leading = checks.shape(self.key.shape[:-2])
            raise ValueError(f"query: expected [..., T, D] with leading dims {leading}, got {checks.shape(query)}")
        owner = self.owner
        normalizer, dropout = owner.active_normalizer, owner.active_dropout
        options = CallOptions(owner.score, owner.pattern, normalizer, bias, allowed, position, dropout, generator)
        return requests.read_cached(query, self._states(), options)

    def prepare(self) -> Memory:
        """Return the memory with all that reads step by step share, computed for the current grad mode and autocast.

        Under a torch.func transform nothing is prepared: its tensors have no meaning outside of it.
        """
        if active_transform(self.key) is not None:
            return self
        states = self._current_states()
        prepared = PreparedKeys.of(self.owner.score, states.key, self.value, states.visible)
        return replace(self, preparation=(_mode(self.key.device), states._replace(prepared=prepared)))

    def _states(self) -> CachedStates:
        """Return the cached states: those of `prepare`, if they were prepared in the current mode."""
        if self.preparation is None or active_transform(self.key) is not None:
            return self._current_states()
        mode, states = self.preparation
        return states if mode == _mode(self.key.device) else self._current_states()

    def _current_states(self) -> CachedStates:
        key, value = requests.as_autocast(self.key), requests.as_autocast(self.value)
        return CachedStates(key, value, self.lengths, requests.visible_keys(self.lengths, self.keys))

    def changed(self, change: Callable[[Tensor], Tensor]) -> Memory:
        """Return the same memory with a function that changes the weights of every read, for interventions."""
        return replace(self, change=change)

    def _read_changed(self, query: Tensor, **options: Any) -> Result:
        """Read with the weights changed by `change`."""
        assert self.change is not None
        unchanged = replace(self, change=None).read(query, weights=True, **options)
        assert unchanged.weights is not None
        weights = self.change(unchanged.weights)
        return Result((weights.to(self.value.dtype) @ self.value).to(unchanged.context.dtype), weights=weights)

    @property
    def ignores_position(self) -> bool:
        """Whether a read with one query per row is the same computation at every position, as CUDA graphs need it."""
        owner = self.owner
        supported = unsupported(owner.score, owner.active_normalizer, owner.active_dropout) is None
        return self.change is None and owner.pattern == Full() and supported

    @property
    def keys(self) -> int:
        """The number of positions, padding included."""
        return self.key.shape[-2]

    def select(self, rows: Tensor | Sequence[int]) -> Memory:
        """Return the given rows of the first leading dim (batch), in the given order, as beam search reorders them."""
        index = torch.as_tensor(rows, device=self.key.device)
        return self._map(lambda x: x.index_select(0, index))

    def repeat(self, times: int) -> Memory:
        """Return the memory with each row of the first leading dim (batch) repeated `times` times, as for a beam."""
        checks.whole_number("repeat", "times", times, minimum=1)
        return self._map(lambda x: x.repeat_interleave(times, 0))

    def append(self, key: Tensor, value: Tensor | None = None) -> Memory:
        """Return the memory with keys [..., n, Dk] appended to the real keys of each row."""
        return self.concat(Memory.of(self.owner, key, key if value is None else value, None))

    def concat(self, new: Memory) -> Memory:
        """Return this memory with another one, all of whose keys are real, appended to it."""
        for name, old, more in (("key", self.key, new.key), ("value", self.value, new.value)):
            if more.shape[:-2] != old.shape[:-2] or more.shape[-1] != old.shape[-1]:
                wanted = [*old.shape[:-2], "n", old.shape[-1]]
                raise ValueError(f"{name}: expected {wanted} to append, got {checks.shape(more)}".replace("'", ""))
        key, value = torch.cat([self.key, new.key], dim=-2), torch.cat([self.value, new.value], dim=-2)
        if self.lengths is None:
            return self.with_states(key, value, None)
        index = _append_index(self.lengths, self.keys, new.keys)[..., None]  # [..., S + n, 1]
        key, value = (torch.take_along_dim(states, index, dim=-2) for states in (key, value))
        return self.with_states(key, value, self.lengths + new.keys)

    def upcast(self) -> Memory:
        """Return the memory in float32 or better, in which energies are computed, and contiguous."""
        key, value = (at_least_float32(requests.as_autocast(states)).contiguous() for states in (self.key, self.value))
        return self.with_states(key, value, self.lengths)

    def with_states(self, key: Tensor, value: Tensor, lengths: Tensor | None) -> Memory:
        """Return the memory with other states, prepared if this one is."""
        memory = replace(self, key=key, value=value, lengths=lengths, preparation=None)
        return memory if self.preparation is None else memory.prepare()

    def _map(self, change: Callable[[Tensor], Tensor]) -> Memory:
        """Return the memory with a function of the batch dim applied to all its tensors."""
        if self.key.dim() < 3:
            got = checks.shape(self.key)
            raise ValueError(f"memory: expected a leading dim for the rows of a batch, got keys {got}")
        lengths = self.lengths
        if lengths is not None and lengths.dim() and lengths.shape[0] > 1:
            lengths = change(lengths)
        return self.with_states(change(self.key), change(self.value), lengths)


def zero_padding(key: Tensor, value: Tensor, lengths: Lengths | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return key and value with 0 at padding, and the lengths as int64 that broadcasts to the leading dims."""
    checks.states("key", key)
    checks.states("value", value)
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"value: expected {key.shape[-2]} positions like key, got {value.shape[-2]}")
    if lengths is None:
        return key, value, None
    leading = checks.common_leading(key=key, value=value)
    counts = requests.read_lengths(lengths, leading, key.shape[-2], key.device)
    visible = requests.visible_keys(counts, key.shape[-2])
    zeroed = requests.zero_hidden(key, visible)
    return zeroed, zeroed if value is key else requests.zero_hidden(value, visible), counts


def _append_index(lengths: Tensor, keys: int, new: int) -> Tensor:
    """Return the source index of each slot of an extended row: real old keys, then the new ones, then the padding."""
    slot = torch.arange(keys + new, device=lengths.device)
    offset = slot - lengths[..., None]  # ≥ 0: at or after the first new key
    from_new = (offset >= 0) & (offset < new)
    return torch.where(from_new, keys + offset, torch.where(offset >= new, slot - new, slot))


def _mode(device: torch.device) -> Mode:
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast_dtype(device)
