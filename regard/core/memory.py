"""A memory: keys projected once and kept with their values, to be read step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from regard.core import checks, single
from regard.core import request as requests
from regard.core.additive_reads import AdditiveReads
from regard.core.local import LocalPredictive
from regard.core.normalizers import Normalizer
from regard.core.observe import answer, check_extras
from regard.core.patterns import Causal, Full, Pattern
from regard.core.plan import choose
from regard.core.request import Lengths
from regard.core.result import Result
from regard.core.scores import Additive, Score, wide
from regard.runtime.autocast import autocast_dtype
from regard.runtime.transforms import transform_of

Mode = tuple[bool, bool, torch.dtype | None]
"""(gradients are recorded, inference mode, the dtype of autocast or None)"""


class AttentionModule(Protocol):
    """What a memory is read by: an `Attention`."""

    @property
    def score(self) -> Score: ...
    @property
    def pattern(self) -> Pattern | LocalPredictive: ...
    @property
    def active_normalizer(self) -> Normalizer: ...
    @property
    def active_dropout(self) -> float: ...


class Prepared(NamedTuple):
    """A memory's tensors as single reads take them, in one mode."""

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
    """What an `Attention` can look at. Never changed: `select`, `repeat` and `append` give a new one."""

    owner: AttentionModule
    key: Tensor
    """k' [..., S, D]: the score's side of the keys, finite at padding"""
    value: Tensor
    """[..., S, Dv], finite at padding"""
    lengths: Tensor | None
    """int64, broadcasts to the leading dims; None: all keys are real"""
    change: Callable[[Tensor], Tensor] | None = None
    """what becomes of the weights [..., T, S] of every read before they count; None: nothing"""
    _by_mode: dict[Mode, Prepared] = field(default_factory=dict, init=False, repr=False, compare=False)
    """a cache for single reads; never shared between modes, because autograd records nothing in some of them"""

    @classmethod
    def of(cls, owner: AttentionModule, key: Tensor, value: Tensor, lengths: Lengths | None) -> Memory:
        """Padding is zeroed before the projection, so that whatever it held reaches no parameter's gradient."""
        checks.states("key", key, owner.score.expects()[1])
        key, value, counts = zero_padding(key, value, lengths)
        leading = checks.common_leading(key=key, value=value)
        key, value = (x.expand(*leading, *x.shape[-2:]) for x in (key, value))
        return cls.ready(owner, key, value, counts)

    @classmethod
    def ready(cls, owner: AttentionModule, key: Tensor, value: Tensor, counts: Tensor | None) -> Memory:
        """Of keys and values whose padding is finite, and which share their leading dims."""
        side = owner.score.key_side(key) if owner.score.lean else key
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
        """query [..., T, Dq], the first of them at `position`: as `attention` over the remembered keys."""
        if self.change is not None:
            options = {"position": position, "bias": bias, "allowed": allowed, "generator": generator}
            return self._changed(query, options)
        checks.states("query", query)
        if query.dim() < self.key.dim():
            leading = checks.shape(self.key.shape[:-2])
            raise ValueError(f"query: expected [..., T, D] with leading dims {leading}, got {checks.shape(query)}")
        normalizer = self.owner.active_normalizer
        check_extras(top, lse, normalizer)
        bare = bias is None and allowed is None and top is None and not lse
        if bare and query.shape[-2] <= self._few and self._plain(position):
            return self._single(query, normalizer, weights)
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
        """The same memory, in which every read has its weights changed: what if a model looked elsewhere?"""
        return replace(self, change=change)

    def _changed(self, query: Tensor, options: dict[str, Any]) -> Result:
        assert self.change is not None
        found = replace(self, change=None).read(query, weights=True, **options)
        assert found.weights is not None
        weights = self.change(found.weights)
        return Result((weights.to(self.value.dtype) @ self.value).to(found.context.dtype), weights=weights)

    @property
    def _few(self) -> int:
        """How many queries a row are so few that they need no plan; in search, those of all hypotheses."""
        return 1 if torch.is_grad_enabled() else single.FEW

    def _plain(self, position: int) -> bool:
        """Is everything there to be seen? The last position has nothing ahead of it."""
        owner = self.owner
        full = owner.pattern == Full() or (owner.pattern == Causal() and position >= self.keys - 1)
        return single.suits(owner.score, owner.active_normalizer, full, owner.active_dropout)

    @property
    def reads_alike(self) -> bool:
        """Is every read by one query a row a plain one, wherever the query stands?"""
        return self.change is None and self.owner.pattern == Full() and self._plain(0)

    def _single(self, query: Tensor, normalizer: Normalizer, weights: bool) -> Result:
        """A read by one query a row, or a few, without a plan."""
        wanted = self.owner.score.expects()[0] or self.key.shape[-1]
        if query.shape[-1] != wanted:
            raise ValueError(
                f"query: expected {wanted} features for {self.owner.score.title}, got {checks.shape(query)}"
            )
        checks.common_leading(query=query, key=self.key)
        query = requests.as_autocast(query)
        ready = self._prepared()
        found = single.read(query, ready.key, ready.value, self.owner.score, normalizer, ready.padding, ready.additive)
        return found if weights else replace(found, weights=None)

    def _prepared(self) -> Prepared:
        """Return what all single reads in the current mode share; it is computed by the first of them.

        Under a transform of torch nothing is cached: its tensors have no meaning outside of it.
        """
        if transform_of(self.key) is not None:
            return self._prepare(for_many_reads=False)
        mode = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast_dtype(self.key.device)
        prepared = self._by_mode.get(mode)
        if prepared is None:
            prepared = self._by_mode[mode] = self._prepare(for_many_reads=True)
        return prepared

    def _prepare(self, for_many_reads: bool) -> Prepared:
        key, score = wide(requests.as_autocast(self.key)), self.owner.score
        padding = additive = None
        if self.lengths is not None:
            padding = (torch.arange(self.keys, device=key.device) >= self.lengths[..., None])[..., None, :]
        # A GPU is left to its own tanh.
        if for_many_reads and isinstance(score, Additive) and score.heads is None and not key.is_cuda:
            additive = AdditiveReads(key, wide(score.vector), wide(self.value), padding)
        return Prepared(key, requests.as_autocast(self.value), padding, additive)

    @property
    def keys(self) -> int:
        """How many positions there are, padding included."""
        return self.key.shape[-2]

    def select(self, rows: Tensor | Sequence[int]) -> Memory:
        """The given rows of the first leading dim (batch), in the given order: what beam search keeps."""
        index = torch.as_tensor(rows, device=self.key.device)
        return self._map(lambda x: x.index_select(0, index))

    def repeat(self, times: int) -> Memory:
        """Each row of the first leading dim `times` times in a row: a beam for every sentence."""
        checks.whole_number("repeat", "times", times, least=1)
        return self._map(lambda x: x.repeat_interleave(times, 0))

    def append(self, key: Tensor, value: Tensor | None = None) -> Memory:
        """With more keys [..., n, Dk] behind those that are there: a cache. Behind the real ones where rows differ."""
        new = Memory.of(self.owner, key, key if value is None else value, None)
        return self.joined(new)

    def joined(self, new: Memory) -> Memory:
        """This memory with another, all of whose keys are real, behind it."""
        for name, old, more in (("key", self.key, new.key), ("value", self.value, new.value)):
            if more.shape[:-2] != old.shape[:-2] or more.shape[-1] != old.shape[-1]:
                wanted = [*old.shape[:-2], "n", old.shape[-1]]
                raise ValueError(f"{name}: expected {wanted} to append, got {checks.shape(more)}".replace("'", ""))
        pairs = ((self.key, new.key), (self.value, new.value))
        key, value = (torch.cat([old, more], dim=-2) for old, more in pairs)
        if self.lengths is None:
            return replace(self, key=key, value=value)
        index = _closed_up(self.lengths, self.keys, new.keys)[..., None]  # [..., S + n, 1]
        key, value = (torch.take_along_dim(states, index, dim=-2) for states in (key, value))
        return replace(self, key=key, value=value, lengths=self.lengths + new.keys)

    def widened(self) -> Memory:
        """The same in float32 or better, in which energies are computed, laid out row by row: once for many reads."""
        key, value = (wide(requests.as_autocast(states)).contiguous() for states in (self.key, self.value))
        return replace(self, key=key, value=value)

    def _map(self, change: Callable[[Tensor], Tensor]) -> Memory:
        if self.key.dim() < 3:
            raise ValueError(
                f"memory: expected a leading dim for the rows of a batch, got keys {checks.shape(self.key)}"
            )
        lengths = self.lengths
        if lengths is not None and lengths.dim() and lengths.shape[0] > 1:
            lengths = change(lengths)
        return replace(self, key=change(self.key), value=change(self.value), lengths=lengths)


def zero_padding(key: Tensor, value: Tensor, lengths: Lengths | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """(key, value) with 0 at and beyond `lengths`, and these as int64 that broadcasts to the leading dims."""
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


def _closed_up(lengths: Tensor, keys: int, new: int) -> Tensor:
    """Where each slot of a grown row comes from: real old keys, then the new ones, then what is left of the padding."""
    slot = torch.arange(keys + new, device=lengths.device)
    behind = slot - lengths[..., None]  # ≥ 0: at or behind the first new key
    from_new = (behind >= 0) & (behind < new)
    return torch.where(from_new, keys + behind, torch.where(behind >= new, slot - new, slot))
