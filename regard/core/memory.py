"""A KV cache: keys that are projected once and cached with their values, to be read step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from regard.core import checks, few_queries
from regard.core import request as requests
from regard.core.additive_reads import AdditiveReads
from regard.core.local import LocalPredictive
from regard.core.normalizers import Normalizer
from regard.core.observe import answer, check_extras
from regard.core.patterns import Causal, Full, Pattern
from regard.core.plan import choose
from regard.core.request import Lengths
from regard.core.result import Result
from regard.core.scores import Additive, Score, at_least_float32
from regard.runtime.autocast import autocast_dtype
from regard.runtime.transforms import active_transform

Mode = tuple[bool, bool, torch.dtype | None]
"""(gradients are recorded, inference mode, the dtype of autocast or None)"""


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


class Prepared(NamedTuple):
    """A memory's tensors for reads without a plan, in one mode."""

    key: Tensor
    """k' [..., S, D], in float32 or better"""
    value: Tensor
    """[..., S, Dv], in the dtype of autocast"""
    padding: Tensor | None
    """bool [..., 1, S]: True at padding; None: all keys are real"""
    additive: AdditiveReads | None
    """for an additive score"""


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
    _by_mode: dict[Mode, Prepared] = field(default_factory=dict, init=False, repr=False, compare=False)
    """a cache for reads without a plan; one entry per mode, because autograd records nothing in some of them"""

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
            options = {"position": position, "bias": bias, "allowed": allowed, "generator": generator}
            return self._read_changed(query, options)
        checks.states("query", query)
        if query.dim() < self.key.dim():
            leading = checks.shape(self.key.shape[:-2])
            raise ValueError(f"query: expected [..., T, D] with leading dims {leading}, got {checks.shape(query)}")
        normalizer = self.owner.active_normalizer
        check_extras(top, lse, normalizer)
        bare = bias is None and allowed is None and top is None and not lse
        if bare and query.shape[-2] <= self._max_unplanned and self._needs_no_plan(position):
            return self._read_unplanned(query, normalizer, weights)
        request = requests.read(
            query,
            self.key,
            self.value,
            self.owner.score,
            self.owner.pattern,
            normalizer,
            bias,
            self.lengths,
            allowed,
            position,
            self.owner.active_dropout,
            generator,
            remembered=True,
        )
        return answer(choose(request), weights, top, lse)

    def changed(self, change: Callable[[Tensor], Tensor]) -> Memory:
        """Return the same memory with a function that changes the weights of every read, for interventions."""
        return replace(self, change=change)

    def _read_changed(self, query: Tensor, options: dict[str, Any]) -> Result:
        """Read with the weights changed by `change`."""
        assert self.change is not None
        unchanged = replace(self, change=None).read(query, weights=True, **options)
        assert unchanged.weights is not None
        weights = self.change(unchanged.weights)
        return Result((weights.to(self.value.dtype) @ self.value).to(unchanged.context.dtype), weights=weights)

    @property
    def _max_unplanned(self) -> int:
        """The largest number of queries per row that are read without a plan; in beam search, of all hypotheses."""
        return 1 if torch.is_grad_enabled() else few_queries.MAX_QUERIES

    def _needs_no_plan(self, position: int) -> bool:
        """Return whether `few_queries.read` supports a read at `position`; at the last one, `Causal` masks nothing."""
        owner = self.owner
        full = owner.pattern == Full() or (owner.pattern == Causal() and position >= self.keys - 1)
        return few_queries.suits(owner.score, owner.active_normalizer, full, owner.active_dropout)

    @property
    def reads_alike(self) -> bool:
        """Whether every read with one query per row needs no plan, at any position."""
        return self.change is None and self.owner.pattern == Full() and self._needs_no_plan(0)

    def _read_unplanned(self, query: Tensor, normalizer: Normalizer, weights: bool) -> Result:
        """Read with one or a few queries per row, without a plan."""
        features = self.owner.score.expects()[0] or self.key.shape[-1]
        if query.shape[-1] != features:
            raise ValueError(
                f"query: expected {features} features for {self.owner.score.title}, got {checks.shape(query)}"
            )
        checks.common_leading(query=query, key=self.key)
        query = requests.as_autocast(query)
        key, value, padding, additive = self._prepared()
        result = few_queries.read(query, key, value, self.owner.score, normalizer, padding, additive)
        return result if weights else replace(result, weights=None)

    def _prepared(self) -> Prepared:
        """Return what all reads without a plan share in the current mode; the first of them computes it.

        Nothing is cached under a torch.func transform: its tensors have no meaning outside of it.
        """
        if active_transform(self.key) is not None:
            return self._prepare(for_many_reads=False)
        mode = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast_dtype(self.key.device)
        prepared = self._by_mode.get(mode)
        if prepared is None:
            prepared = self._by_mode[mode] = self._prepare(for_many_reads=True)
        return prepared

    def _prepare(self, for_many_reads: bool) -> Prepared:
        """Compute what reads without a plan share."""
        key, score = at_least_float32(requests.as_autocast(self.key)), self.owner.score
        padding = additive = None
        if self.lengths is not None:
            padding = (torch.arange(self.keys, device=key.device) >= self.lengths[..., None])[..., None, :]
        # On a GPU, tanh is cheap: no exponentials are cached.
        if for_many_reads and isinstance(score, Additive) and score.heads is None and not key.is_cuda:
            additive = AdditiveReads(key, at_least_float32(score.vector), at_least_float32(self.value), padding)
        return Prepared(key, requests.as_autocast(self.value), padding, additive)

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
        new = Memory.of(self.owner, key, key if value is None else value, None)
        return self.concat(new)

    def concat(self, new: Memory) -> Memory:
        """Return this memory with another one, all of whose keys are real, appended to it."""
        for name, old, more in (("key", self.key, new.key), ("value", self.value, new.value)):
            if more.shape[:-2] != old.shape[:-2] or more.shape[-1] != old.shape[-1]:
                wanted = [*old.shape[:-2], "n", old.shape[-1]]
                raise ValueError(f"{name}: expected {wanted} to append, got {checks.shape(more)}".replace("'", ""))
        pairs = ((self.key, new.key), (self.value, new.value))
        key, value = (torch.cat([old, more], dim=-2) for old, more in pairs)
        if self.lengths is None:
            return replace(self, key=key, value=value)
        index = _append_index(self.lengths, self.keys, new.keys)[..., None]  # [..., S + n, 1]
        key, value = (torch.take_along_dim(states, index, dim=-2) for states in (key, value))
        return replace(self, key=key, value=value, lengths=self.lengths + new.keys)

    def upcast(self) -> Memory:
        """Return the memory in float32 or better, in which energies are computed, and contiguous."""
        key, value = (at_least_float32(requests.as_autocast(states)).contiguous() for states in (self.key, self.value))
        return replace(self, key=key, value=value)

    def _map(self, change: Callable[[Tensor], Tensor]) -> Memory:
        """Return the memory with a function of the batch dim applied to all its tensors."""
        if self.key.dim() < 3:
            raise ValueError(
                f"memory: expected a leading dim for the rows of a batch, got keys {checks.shape(self.key)}"
            )
        lengths = self.lengths
        if lengths is not None and lengths.dim() and lengths.shape[0] > 1:
            lengths = change(lengths)
        return replace(self, key=change(self.key), value=change(self.value), lengths=lengths)


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
    visible = torch.arange(key.shape[-2], device=key.device) < counts[..., None]
    zeroed = requests.without_padding(key, visible)
    return zeroed, zeroed if value is key else requests.without_padding(value, visible), counts


def _append_index(lengths: Tensor, keys: int, new: int) -> Tensor:
    """Return the source index of each slot of an extended row: real old keys, then the new ones, then the padding."""
    slot = torch.arange(keys + new, device=lengths.device)
    offset = slot - lengths[..., None]  # ≥ 0: at or after the first new key
    from_new = (offset >= 0) & (offset < new)
    return torch.where(from_new, keys + offset, torch.where(offset >= new, slot - new, slot))
