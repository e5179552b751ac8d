"""A request: one call of `attention`, with checked arguments and masks in one form, for plan and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from textwrap import shorten
from typing import Any, NamedTuple, TypedDict

import torch
from torch import Tensor

from regard.core import checks
from regard.core.local import LocalPredictive, heads_of
from regard.core.normalizers import Normalizer
from regard.core.patterns import Full, Pattern, check_custom
from regard.core.scores import AdditiveTerms, BilinearTerms, Score, Terms, at_least_float32, terms_of
from regard.runtime.precision import autocast_dtype
from regard.runtime.transforms import active_transform

Lengths = Tensor | Sequence[int]  # how many keys are real (not padding); its shape is a prefix of the leading dims


@dataclass(frozen=True, repr=False)
class Request:
    """The arguments of one call. `leading` is what the leading dims of query, key and value broadcast to."""

    query: Tensor
    key: Tensor
    """with 0 at padding, so that NaN there cannot reach the result"""
    value: Tensor
    score: Score
    pattern: Pattern | LocalPredictive
    normalizer: Normalizer
    bias: Tensor | None
    """broadcasts to [*leading, T, S]"""
    visible: Tensor | None
    """bool [..., S], broadcasts to [*leading, S]: False at padding and at keys that `allowed` hides from every query"""
    allowed: Tensor | None
    """bool, broadcasts to [*leading, T, S]; None if the mask is the same for all queries"""
    lengths: Tensor | None
    """int64, broadcasts to [*leading]"""
    position: int
    dropout: float
    seed: int | Tensor
    """of dropout and samples; 0 without either"""
    leading: torch.Size
    row_numbers: Tensor | None = None
    """int64 [*leading]: the number that identifies each row of the batch for counter-based noise; None: in order"""
    remembered: bool = False
    """`key` comes from a Memory: it is k' if the score has terms, else the keys"""
    prepared: object | None = None
    """what the Memory has prepared for a kernel (kernels/few_queries.py)"""
    _terms: list[Terms] = field(default_factory=list, init=False, compare=False)
    """the cached terms; not a cached_property, whose lock in Python 3.11 torch.compile cannot trace"""

    def describe(self, max_length: int | None = None) -> str:
        """Return one line on shapes, score, pattern, shortened if it is longer than `max_length`, and normalizer."""
        sizes = " × ".join(str(n) for n in (*self.leading, self.queries))
        pattern = "LocalPredictive" if isinstance(self.pattern, LocalPredictive) else str(self.pattern)
        pattern = pattern if max_length is None else shorten(pattern, max_length, placeholder=" …")
        return f"attention of {sizes} queries to {self.keys} keys: {self.score.title}, {pattern}, {self.normalizer}"

    def __repr__(self) -> str:
        return self.describe(max_length=60)

    @property
    def rows(self) -> Tensor:
        """int64 [*leading]: the number of each row of the batch."""
        if self.row_numbers is not None:
            return self.row_numbers
        return torch.arange(self.leading.numel(), device=self.query.device).view(self.leading)

    @property
    def terms(self) -> Terms | None:
        """The terms with which kernels compute the score; None if it has none."""
        if not self._terms:
            if not self.score.has_terms:
                return None
            side = self.key if self.remembered else self.score.key_side(self.key)
            self._terms.append(terms_of(self.score, self.query, side))
        return self._terms[0]

    @property
    def bilinear(self) -> BilinearTerms | None:
        """The terms of a bilinear score; None of any other."""
        return self.terms if isinstance(self.terms, BilinearTerms) else None

    @property
    def additive(self) -> AdditiveTerms | None:
        """The terms of an additive score; None of any other."""
        return self.terms if isinstance(self.terms, AdditiveTerms) else None

    @property
    def queries(self) -> int:
        return self.query.shape[-2]

    @property
    def keys(self) -> int:
        return self.key.shape[-2]

    @property
    def transform(self) -> str | None:
        """The active torch transform, through which only plain operations can go, as text; None without one."""
        return active_transform(self.query)

    @property
    def noise_seed(self) -> int | Tensor:
        """The seed of samples, which differs from that of dropout."""
        return self.seed + 0x5BD1E995

    def mask(self) -> Tensor | None:
        """Return lengths, allowed and the fixed pattern as bool that broadcasts to [*leading, T, S], or None."""
        fixed = self.pattern.within if isinstance(self.pattern, LocalPredictive) else self.pattern
        masks = [] if self.allowed is None else [self.allowed]
        if self.visible is not None:
            masks.append(self.visible[..., None, :])
        if fixed != Full():
            masks.append(fixed.mask(self.queries, self.keys, self.position, self.query.device))
        return reduce(torch.logical_and, masks) if masks else None


class CallOptions(NamedTuple):
    """The arguments of `attention` other than the states."""

    score: Score
    pattern: Pattern | LocalPredictive
    normalizer: Normalizer
    bias: Tensor | None = None
    allowed: Tensor | None = None
    position: int = 0
    dropout: float = 0.0
    generator: torch.Generator | None = None


class ReadOptions(TypedDict, total=False):
    """The keyword arguments of `attention` that modules and memories take as well, with the same defaults."""

    bias: Tensor | None
    allowed: Tensor | None
    position: int
    weights: bool
    top: int | None
    lse: bool
    generator: torch.Generator | None


class CachedStates(NamedTuple):
    """The keys and values of a Memory, in the dtype of autocast, 0 at padding."""

    key: Tensor  # k' [..., S, D] if the score has terms, else the keys
    value: Tensor  # [..., S, Dv], with the leading dims of the keys
    lengths: Tensor | None  # int64, broadcasts to the leading dims
    visible: Tensor | None  # bool [..., S]: False is padding
    prepared: object | None = None  # what is prepared for a kernel in the current mode


def read(query: Tensor, key: Tensor, value: Tensor, options: CallOptions, lengths: Lengths | None = None) -> Request:
    """Check the arguments of a call and return them as a request."""
    query, key, value = as_autocast(query), as_autocast(key), as_autocast(value)
    _check_states(query, key, value, options.score)
    leading = checks.common_leading(query=query, key=key, value=value)
    counts = None if lengths is None else read_lengths(lengths, leading, key.shape[-2], query.device)
    states = CachedStates(key, value, counts, visible_keys(counts, key.shape[-2]))
    return _request(query, states, leading, options, remembered=False)


def read_cached(query: Tensor, states: CachedStates, options: CallOptions) -> Request:
    """Check the arguments of a read of a Memory and return them as a request."""
    query = as_autocast(query)
    features = options.score.expects()[0]
    if features is None and options.score.has_terms:
        features = states.key.shape[-1]
    _check_query(query, options.score, features)
    if query.dtype is torch.float32 and states.key.dtype in (torch.float16, torch.bfloat16):  # cached under autocast
        states = states._replace(key=states.key.float(), value=states.value.float())
    _check_same("key", states.key, query)
    leading = checks.common_leading(query=query, key=states.key)
    return _request(query, states, leading, options, remembered=True)


def _request(
    query: Tensor, states: CachedStates, leading: torch.Size, options: CallOptions, remembered: bool
) -> Request:
    """Check the options and return the request."""
    key, value, lengths, visible, prepared = states
    score, pattern, normalizer, bias, allowed, position, dropout, generator = options
    sizes = query.shape[-2], key.shape[-2]
    _check_parameters(query, score)
    _check_heads(leading, score, pattern)
    if isinstance(pattern, LocalPredictive) and query.shape[-1] != pattern.query_dim:
        raise ValueError(f"query: expected {pattern.query_dim} features for LocalPredictive, got {checks.shape(query)}")
    fixed = pattern.within if isinstance(pattern, LocalPredictive) else pattern
    check_custom(fixed, *sizes, checks.whole_number("attention", "position", position), query.device)
    bias, allowed = _check_pairs(bias, allowed, (*leading, *sizes), query)
    zeroed = remembered and allowed is None
    if allowed is not None:
        visible, allowed = _split_mask(visible, allowed, sizes[1])
        prepared = None  # for other visible keys
    dropout = checks.fraction("dropout", dropout)
    return Request(
        query=query,
        key=key if zeroed else zero_hidden(key, visible),
        value=value if zeroed else zero_hidden(value, visible),
        score=score,
        pattern=pattern,
        normalizer=normalizer,
        bias=bias,
        visible=visible,
        allowed=allowed,
        lengths=lengths,
        position=position,
        dropout=dropout,
        seed=_seed(generator, query) if dropout > 0 or getattr(normalizer, "sample", False) else 0,
        leading=leading,
        remembered=remembered,
        prepared=prepared,
    )


def _check_pairs(
    bias: Tensor | None, allowed: Tensor | None, pairs: tuple[int, ...], query: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """Return bias, in float32 or better, and allowed if both broadcast to `pairs` on the query's device."""
    if bias is not None:
        bias = checks.pairs("bias", bias, pairs, floating=True).to(at_least_float32(query[..., :0, :]).dtype)
    if allowed is not None:
        allowed = checks.pairs("allowed", allowed, pairs, floating=False)
    for name, given in (("bias", bias), ("allowed", allowed)):
        if given is not None and given.device != query.device:
            raise TypeError(f"{name}: expected a tensor on {query.device} like query, got one on {given.device}")
    return bias, allowed


def zero_hidden(states: Tensor, visible: Tensor | None) -> Tensor:
    """Return states [..., S, D] with 0 where not visible [..., S]; the gradient there is 0, even if padding was NaN."""
    return states if visible is None else torch.where(visible[..., None], states, 0)


def read_lengths(lengths: Any, leading: torch.Size, keys: int, device: torch.device) -> Tensor:
    """Return int64 [*prefix of leading, 1, …]: aligned from the left, so that it broadcasts to the leading dims."""
    try:
        given = lengths if isinstance(lengths, Tensor) else torch.as_tensor(lengths, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"lengths: expected integers, got {lengths!r}") from None
    if given.dtype.is_floating_point or given.dtype.is_complex or given.dtype is torch.bool:
        raise TypeError(f"lengths: expected integers, got {given.dtype}")
    prefix = leading[: given.dim()]
    if len(prefix) < given.dim() or any(n not in (1, size) for n, size in zip(given.shape, prefix, strict=True)):
        wanted = f"a shape that begins like the leading dims {checks.shape(leading)}"
        raise ValueError(f"lengths: expected {wanted}, got {checks.shape(given)}")
    # On other devices the check would synchronize, and under a transform there are no numbers to check: there, lengths
    # out of range act as 0 or as the whole row.
    readable = given.device.type == "cpu" and given.numel() and active_transform(given) is None
    if readable and (given.min() < 0 or given.max() > keys):
        raise ValueError(f"lengths: expected 0 … {keys} (the number of keys), got {given.min()} … {given.max()}")
    # Without synchronizing: a copy from pageable memory is staged before the call returns; pinned memory would be read
    # later, when its owner may have changed it.
    staged = device.type == "cuda" and given.device.type == "cpu" and not given.is_pinned()
    counts = given.to(device, torch.int64, non_blocking=staged)
    return counts.view((*given.shape, *[1] * (len(leading) - given.dim())))


def visible_keys(counts: Tensor | None, keys: int) -> Tensor | None:
    """Return bool [..., S], False at padding, from the lengths [...]; None if all keys are real."""
    return None if counts is None else torch.arange(keys, device=counts.device) < counts[..., None]


def _split_mask(visible: Tensor | None, allowed: Tensor, keys: int) -> tuple[Tensor, Tensor | None]:
    """Return (visible [..., S], allowed [..., T, S]): the mask of keys for all queries, and that of pairs."""
    by_key = allowed.any(-2) if allowed.shape[-2] else allowed.new_zeros(*allowed.shape[:-2], allowed.shape[-1])
    by_key = by_key.expand(*by_key.shape[:-1], keys)
    return by_key if visible is None else visible & by_key, None if allowed.shape[-2] == 1 else allowed


def as_autocast(x: Tensor) -> Tensor:
    """Convert a tensor to the dtype of `torch.autocast`, if that is active, as torch's own attention does."""
    if isinstance(x, Tensor) and x.dtype in (torch.float32, torch.float16, torch.bfloat16):
        dtype = autocast_dtype(x.device)
        return x if dtype is None else x.to(dtype)
    return x


def _check_states(query: Tensor, key: Tensor, value: Tensor, score: Score) -> None:
    """Raise if dtypes, devices, positions or features do not fit together."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        checks.states(name, tensor)
        _check_same(name, tensor, query)
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"value: expected {key.shape[-2]} positions like key, got {value.shape[-2]}")
    query_dim, key_dim = score.expects()
    _check_query(query, score, query_dim)
    if key_dim is not None and key.shape[-1] != key_dim:
        raise ValueError(f"key: expected {key_dim} features for {score.title}, got {checks.shape(key)}")
    if query_dim is None and key_dim is None and score.has_terms and query.shape[-1] != key.shape[-1]:
        wanted = f"{query.shape[-1]} features like query for {score.title}"
        raise ValueError(f"key: expected {wanted}, got {checks.shape(key)}")


def _check_same(name: str, states: Tensor, query: Tensor) -> None:
    """Raise if states differ from the query in dtype or device."""
    if states.dtype is not query.dtype or states.device != query.device:
        wanted = f"{query.dtype} on {query.device} like query"
        raise TypeError(f"{name}: expected {wanted}, got {states.dtype} on {states.device}")


def _check_query(query: Tensor, score: Score, features: int | None) -> None:
    """Raise if the query has not so many features."""
    if features is not None and query.shape[-1] != features:
        raise ValueError(f"query: expected {features} features for {score.title}, got {checks.shape(query)}")


def _check_parameters(query: Tensor, score: Score) -> None:
    """Raise if the score's parameters differ from the query in dtype or device."""
    for parameter in score.parameters():
        same = parameter.dtype is query.dtype or autocast_dtype(query.device) is not None
        if not same or parameter.device != query.device:
            wanted, got = f"{query.dtype} on {query.device}", f"{parameter.dtype} on {parameter.device}"
            raise TypeError(f"score: expected parameters in {wanted} like query, got {got}")


def _check_heads(leading: torch.Size, score: Score, pattern: Pattern | LocalPredictive) -> None:
    """Raise if score or pattern are made for another number of heads."""
    for name, heads in (("score", score.heads), ("pattern", heads_of(pattern))):
        if heads is not None and (not leading or leading[-1] != heads):
            got = f"{leading[-1]} in {checks.shape(leading)}" if leading else "no leading dims"
            raise ValueError(f"{name}: made for {heads} heads (the last leading dim), got {got}")


def _seed(generator: torch.Generator | None, query: Tensor) -> int | Tensor:
    """Draw a seed: an int; under a torch transform, where ints cannot be read, an int64 tensor []."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(f"generator: expected a torch.Generator, got {type(generator).__name__}")
    if generator is not None and torch.compiler.is_compiling():
        raise RuntimeError(
            "generator: torch.compile and torch.export trace none; call torch.manual_seed before instead"
        )
    device = torch.device("cpu") if generator is None else generator.device
    if active_transform(query) is not None:
        return torch.randint(1 << 31, (), generator=generator, device=query.device if generator is None else device)
    return int(torch.randint(1 << 31, (), generator=generator, device=device))
