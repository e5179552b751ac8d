"""A request: one call of `attention`, checked, with its masks brought into one form. What plan and kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from regard.core.local import LocalPredictive, heads_of
from regard.core.normalizers import Normalizer
from regard.core.patterns import Full, Pattern
from regard.core.scores import AdditiveTerms, Bilinear, Score


@dataclass(frozen=True)
class Request:
    """Shapes: `leading` is what the leading dims of query, key and value broadcast to; T queries, S keys."""

    query: Tensor
    key: Tensor
    """with 0 at padding, so that nothing it held can reach the result"""
    value: Tensor
    score: Score
    pattern: Pattern | LocalPredictive
    normalizer: Normalizer
    bias: Tensor | None
    """broadcasts to [*leading, T, S]"""
    visible: Tensor | None
    """bool, broadcasts to [*leading, S]: False is padding"""
    allowed: Tensor | None
    """bool, broadcasts to [*leading, T, S], where pairs differ and not only keys"""
    lengths: Tensor | None
    """int64, broadcasts to [*leading]"""
    position: int
    dropout: float
    seed: int
    """of dropout and samples; 0 where neither is asked for"""
    rows: Tensor
    """int64 [*leading]: the number by which noise knows each row of the batch"""

    @property
    def leading(self) -> torch.Size:
        return self.rows.shape

    @property
    def queries(self) -> int:
        return self.query.shape[-2]

    @property
    def keys(self) -> int:
        return self.key.shape[-2]

    @cached_property
    def terms(self) -> Bilinear | AdditiveTerms | None:
        """What the score hands to the kernels."""
        return self.score.terms(self.query, self.score.key_side(self.key))

    @property
    def noise_seed(self) -> int:
        """Samples and dropout draw from different streams."""
        return self.seed + 0x5BD1E995

    def mask(self) -> Tensor | None:
        """bool, broadcasts to [*leading, T, S]: lengths, allowed and the fixed pattern together; None: all may look."""
        fixed = self.pattern.within if isinstance(self.pattern, LocalPredictive) else self.pattern
        masks = [] if self.allowed is None else [self.allowed]
        if self.visible is not None:
            masks.append(self.visible[..., None, :])
        if fixed != Full():
            masks.append(fixed.mask(self.queries, self.keys, self.position, self.query.device))
        if not masks:
            return None
        mask = masks[0]
        for other in masks[1:]:
            mask = mask & other
        return mask


def read(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score,
    pattern: Pattern | LocalPredictive,
    normalizer: Normalizer,
    bias: Tensor | None,
    lengths: Tensor | Sequence[int] | None,
    allowed: Tensor | None,
    position: int,
    dropout: float,
    generator: torch.Generator | None,
    zeroed: bool = False,
) -> Request:
    """Check what came and say in one sentence what is wrong with it. `zeroed`: beyond `lengths` there is 0 already."""
    query, key, value = _as_autocast(query), _as_autocast(key), _as_autocast(value)
    _check_tensors(query, key, value, score)
    leading = _leading(query, key, value)
    pairs = (*leading, query.shape[-2], key.shape[-2])
    _check_heads(leading, score, pattern)
    if bias is not None:
        _check_pairs("bias", bias, pairs, floating=True)
    if allowed is not None:
        _check_pairs("allowed", allowed, pairs, floating=False)
    if not isinstance(position, int) or position < 0:
        raise ValueError(f"position: expected a whole number ≥ 0, got {position!r}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout: expected a number in [0, 1), got {dropout!r}")
    counts = None if lengths is None else read_lengths(lengths, leading, key.shape[-2], query.device)
    zeroed = zeroed and allowed is None
    visible, allowed = _visible(counts, allowed, key.shape[-2])
    return Request(
        query=query,
        key=key if zeroed else without_padding(key, visible),
        value=value if zeroed else without_padding(value, visible),
        score=score,
        pattern=pattern,
        normalizer=normalizer,
        bias=bias,
        visible=visible,
        allowed=allowed,
        lengths=counts,
        position=position,
        dropout=float(dropout),
        seed=_seed(generator) if dropout > 0 or getattr(normalizer, "sample", False) else 0,
        rows=torch.arange(leading.numel(), device=query.device).view(leading),
    )


def without_padding(states: Tensor, visible: Tensor | None) -> Tensor:
    """states [..., S, D] with 0 where not visible [..., S]; the gradient there is 0, whatever the padding held."""
    return states if visible is None else torch.where(visible[..., None], states, 0)


def read_lengths(lengths: Any, leading: torch.Size, keys: int, device: torch.device) -> Tensor:
    """int64 [*prefix of leading, 1, …]: aligned from the left, so that it broadcasts against the leading dims."""
    given = lengths if isinstance(lengths, Tensor) else torch.as_tensor(lengths)
    if given.dtype.is_floating_point or given.dtype.is_complex or given.dtype is torch.bool:
        raise TypeError(f"lengths: expected integers, got {given.dtype}")
    prefix = leading[: given.dim()]
    if len(prefix) < given.dim() or any(n not in (1, size) for n, size in zip(given.shape, prefix, strict=True)):
        raise ValueError(
            f"lengths: expected a shape that begins like the leading dims {_shape(leading)}, got {_shape(given)}"
        )
    # On other devices the check would wait for the device; there, lengths out of range act as 0 or as the whole row.
    if given.device.type == "cpu" and given.numel() and (given.min() < 0 or given.max() > keys):
        raise ValueError(f"lengths: expected 0 … {keys} (the number of keys), got {given.min()} … {given.max()}")
    return given.to(device, torch.int64).view((*given.shape, *[1] * (len(leading) - given.dim())))


def _visible(counts: Tensor | None, allowed: Tensor | None, keys: int) -> tuple[Tensor | None, Tensor | None]:
    """(visible [..., S], allowed [..., T, S]): what hides keys from every query, and what hides pairs."""
    visible = None if counts is None else torch.arange(keys, device=counts.device) < counts[..., None]
    if allowed is None:
        return visible, None
    allowed = allowed.view(*[1] * (2 - allowed.dim()), *allowed.shape)
    by_key = allowed.any(-2) if allowed.shape[-2] else allowed.new_zeros(*allowed.shape[:-2], allowed.shape[-1])
    by_key = by_key.expand(*by_key.shape[:-1], keys)
    visible = by_key if visible is None else visible & by_key
    return visible, None if allowed.shape[-2] == 1 else allowed


def _as_autocast(x: Tensor) -> Tensor:
    """Inside `torch.autocast`, in its dtype, as torch's own attention does."""
    if isinstance(x, Tensor) and x.dtype in (torch.float32, torch.float16, torch.bfloat16):
        device = x.device.type
        if torch.is_autocast_enabled(device):
            return x.to(torch.get_autocast_dtype(device))
    return x


def _leading(query: Tensor, key: Tensor, value: Tensor) -> torch.Size:
    try:
        return torch.Size(torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2]))
    except RuntimeError:
        shapes = " and ".join(_shape(x.shape[:-2]) for x in (query, key, value))
        raise ValueError(f"query, key, value: expected leading dims that broadcast, got {shapes}") from None


def _check_tensors(query: Tensor, key: Tensor, value: Tensor, score: Score) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(tensor).__name__}")
        if tensor.dim() < 2:
            raise ValueError(f"{name}: expected at least 2 dims [..., positions, features], got {_shape(tensor)}")
        if not tensor.dtype.is_floating_point:
            raise TypeError(f"{name}: expected floating-point numbers, got {tensor.dtype}")
        if tensor.dtype is not query.dtype or tensor.device != query.device:
            wanted = f"{query.dtype} on {query.device} like query"
            raise TypeError(f"{name}: expected {wanted}, got {tensor.dtype} on {tensor.device}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"value: expected {key.shape[-2]} positions like key, got {value.shape[-2]}")
    _check_dims(query, key, score)


def _check_dims(query: Tensor, key: Tensor, score: Score) -> None:
    query_dim, key_dim = score.expects()
    name = type(score).__name__
    if query_dim is not None and query.shape[-1] != query_dim:
        raise ValueError(f"query: expected {query_dim} features for {name}, got {_shape(query)}")
    if key_dim is not None and key.shape[-1] != key_dim:
        raise ValueError(f"key: expected {key_dim} features for {name}, got {_shape(key)}")
    parameter = next(score.parameters(), None)
    if parameter is not None and parameter.device != query.device:
        raise TypeError(f"score: expected parameters on {query.device} like query, got {parameter.device}")
    if query_dim is None and key_dim is None and query.shape[-1] != key.shape[-1]:
        raise ValueError(f"key: expected {query.shape[-1]} features like query for {name}, got {_shape(key)}")


def _check_heads(leading: torch.Size, score: Score, pattern: Pattern | LocalPredictive) -> None:
    for name, heads in (("score", score.heads), ("pattern", heads_of(pattern))):
        if heads is not None and (not leading or leading[-1] != heads):
            got = f"{leading[-1]} in {_shape(leading)}" if leading else "no leading dims"
            raise ValueError(f"{name}: made for {heads} heads (the last leading dim), got {got}")


def _check_pairs(name: str, given: Tensor, pairs: tuple[int, ...], floating: bool) -> None:
    if not isinstance(given, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(given).__name__}")
    if floating and not given.dtype.is_floating_point:
        raise TypeError(f"{name}: expected floating-point numbers, got {given.dtype}; a mask of bool goes to `allowed`")
    if not floating and given.dtype is not torch.bool:
        raise TypeError(f"{name}: expected bool (True: may look), got {given.dtype}; numbers to add go to `bias`")
    try:
        fits = torch.broadcast_shapes(given.shape, pairs) == torch.Size(pairs)
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name}: expected a shape that broadcasts to {_shape(pairs)} ([..., T, S]), got {_shape(given)}"
        )


def _seed(generator: torch.Generator | None) -> int:
    device = "cpu" if generator is None else generator.device
    return int(torch.randint(1 << 31, (), generator=generator, device=device))


def _shape(shape: Tensor | Sequence[int]) -> str:
    return str(list(shape.shape if isinstance(shape, Tensor) else shape))
