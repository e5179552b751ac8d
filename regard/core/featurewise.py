"""Multi-dimensional attention: a weight for each feature of each key, not one per key (Shen et al. 2018).

    energies = V tanh(W q_t + U k_s + b)              [..., T, S, D]
    weights  = softmax over s, for each feature d     [..., T, S, D]
    context  = Σ_s weights_s ⊙ value_s                [..., T, D]

Different features of a query can so attend to different words. Each feature is treated as a head of width 1, and all
heads share W and U. The computation is that of `attention`, so patterns, lengths, masks and normalizers mean the same
as there. The energies are computed for a block of queries at a time, and only for the keys that these may attend to;
the backward pass recomputes them.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.core import checks
from regard.core.attention import attention, read_normalizer, read_pattern
from regard.core.checks import fraction, positive, whole_number
from regard.core.normalizers import Entmax, Normalizer, Softmax
from regard.core.patterns import Full, Pattern, PerHead, check_custom
from regard.core.request import Lengths, read_lengths
from regard.core.result import Result
from regard.core.scores import Score
from regard.core.spans import length

_MAX_ELEMENTS = 1 << 22  # of [..., T, S, features] at a time: 16 MiB in float32


class FeatureScore(Score):
    """A score with one energy per feature; `by_feature` defines it."""

    features: int

    @abstractmethod
    def by_feature(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the energies [..., T, S, features] of query [..., T, Dq] and key [..., S, Dk]."""

    @property
    def widest(self) -> int:
        """The number of features of the widest tensor that is computed per pair; it limits the block size."""
        return self.features

    def energies(self, query: Tensor, key: Tensor) -> Tensor:
        """Return [..., features, T, S] of query [..., 1, T, Dq] and key [..., 1, S, Dk]: a feature is a head."""
        return self.by_feature(query, key).squeeze(-4).movedim(-1, -3)

    @property
    def heads(self) -> int:
        return self.features


class FeatureAdditive(FeatureScore):
    """V tanh(W q + U k + b): the additive score with a matrix in place of its vector."""

    def __init__(self, query_dim: int, key_dim: int, features: int, hidden: int | None = None) -> None:
        super().__init__()
        hidden = features if hidden is None else hidden
        for name, dim in (("query_dim", query_dim), ("key_dim", key_dim), ("features", features), ("hidden", hidden)):
            whole_number("FeatureAdditive", name, dim, minimum=1)
        self.features, self.hidden = features, hidden
        self.query = nn.Linear(query_dim, hidden)  # W, b
        self.key = nn.Linear(key_dim, hidden, bias=False)  # U
        self.output = nn.Linear(hidden, features, bias=False)  # V

    def by_feature(self, query: Tensor, key: Tensor) -> Tensor:
        pairs = torch.tanh(self.query(query)[..., :, None, :] + self.key(key)[..., None, :, :])  # [..., T, S, H]
        energies: Tensor = self.output(pairs)
        return energies

    @property
    def widest(self) -> int:
        return max(self.features, self.hidden)

    def expects(self) -> tuple[int, int]:
        return self.query.in_features, self.key.in_features


class FeatureTanh(FeatureScore):
    """c · tanh((W q + U k + b) / c): no output matrix, and energies within ± c; DiSAN has c = 5."""

    def __init__(self, query_dim: int, key_dim: int, features: int, clip: float = 5.0) -> None:
        super().__init__()
        for name, dim in (("query_dim", query_dim), ("key_dim", key_dim), ("features", features)):
            whole_number("FeatureTanh", name, dim, minimum=1)
        self.features, self.clip = features, positive("FeatureTanh", "clip", clip)
        self.query = nn.Linear(query_dim, features)  # W, b
        self.key = nn.Linear(key_dim, features, bias=False)  # U

    def by_feature(self, query: Tensor, key: Tensor) -> Tensor:
        pairs = self.query(query)[..., :, None, :] + self.key(key)[..., None, :, :]  # [..., T, S, D]
        return self.clip * torch.tanh(pairs / self.clip)

    def expects(self) -> tuple[int, int]:
        return self.query.in_features, self.key.in_features


def featurewise(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: FeatureScore,
    pattern: Pattern | str = Full(),  # noqa: B008, a frozen value
    normalizer: Normalizer | str = Softmax(),  # noqa: B008, a frozen value
    lengths: Lengths | None = None,
    allowed: Tensor | None = None,
    position: int = 0,
    dropout: float = 0.0,
    weights: bool = False,
    generator: torch.Generator | None = None,
) -> Result:
    """Return for each query and feature the weighted sum of that feature of the values.

    query [..., T, Dq], key [..., S, Dk], value [..., S, D] → context [..., T, D], weights [..., T, S, D]. All else is
    as in `attention`; the normalizer may not be `Hard`.
    """
    score, fixed, entmax = _checked(score, pattern, normalizer)
    checks.states("query", query)
    checks.states("key", key)
    checks.states("value", value, score.features)
    leading = checks.common_leading(query=query, key=key, value=value)
    pairs = (*leading, query.shape[-2], key.shape[-2])
    if lengths is not None:
        lengths = read_lengths(lengths, leading, key.shape[-2], query.device)[..., None, None]
    if allowed is not None:
        allowed = checks.pairs("allowed", allowed, pairs, floating=False)
    whole_number("featurewise", "position", position)
    check_custom(fixed, pairs[-2], pairs[-1], position, query.device)
    seed = int(torch.randint(1 << 31, (), generator=generator)) if fraction("dropout", dropout) > 0 else 0
    # A feature is a head of width 1.
    states = query[..., None, :, :], key[..., None, :, :], value.mT[..., None]
    blocks = []
    for start, stop in _blocks(pairs, score.widest, fixed, position):
        visible, mask = _block_mask(fixed, lengths, allowed, (start, stop), pairs, position, query.device)
        work = states[0][..., start:stop, :], *states[1:], visible, mask, score, entmax, dropout, seed + start, weights
        # With several blocks, activations are recomputed in the backward pass (gradient checkpointing).
        save_all = stop - start == pairs[-2] or not torch.is_grad_enabled()
        blocks.append(_attend(*work) if save_all else checkpoint(_attend, *work, use_reentrant=False))
    return _concatenate(blocks, pairs)


class Featurewise(nn.Module):
    """`featurewise` as a module that owns the score. It is self-attention if only a query is given."""

    def __init__(
        self,
        score: FeatureScore,
        pattern: Pattern | str = Full(),  # noqa: B008, a frozen value
        normalizer: Normalizer | str = Softmax(),  # noqa: B008, a frozen value
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.score, self.pattern, self.normalizer = _checked(score, pattern, normalizer)
        self.dropout = fraction("dropout", dropout)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        lengths: Lengths | None = None,
        allowed: Tensor | None = None,
        position: int = 0,
        weights: bool = False,
        generator: torch.Generator | None = None,
    ) -> Result:
        """Compute `featurewise` with the module's parts; `key` defaults to `query`, and `value` to `key`."""
        key = query if key is None else key
        return featurewise(
            query,
            key,
            key if value is None else value,
            score=self.score,
            pattern=self.pattern,
            normalizer=self.normalizer,
            lengths=lengths,
            allowed=allowed,
            position=position,
            dropout=self.dropout if self.training else 0.0,
            weights=weights,
            generator=generator,
        )


class FeaturePool(nn.Module):
    """Pooling of a sentence into one vector, with weights over the words for each feature.

        weights = softmax over s of V tanh(W u + U x_s + b), with a learned query u      [..., S, D]
        context = Σ_s weights_s ⊙ x_s                                                    [..., D]

    This is the "source2token" attention of Shen et al. 2018, in which W u + b is the bias.
    """

    def __init__(
        self,
        dim: int,
        hidden: int | None = None,
        normalizer: Normalizer | str = Softmax(),  # noqa: B008, a frozen value
    ) -> None:
        super().__init__()
        self.attend = Featurewise(FeatureAdditive(dim, dim, dim, hidden), normalizer=normalizer)
        self.query = nn.Parameter(torch.empty(1, dim).uniform_(-1 / math.sqrt(dim), 1 / math.sqrt(dim)))

    def forward(
        self, states: Tensor, *, lengths: Lengths | None = None, allowed: Tensor | None = None, weights: bool = False
    ) -> Result:
        """Pool states [..., S, dim] to context [..., dim], weights [..., S, dim]; `allowed` broadcasts to [..., S]."""
        checks.states("states", states, self.query.shape[-1])
        if isinstance(allowed, Tensor) and allowed.dim():
            allowed = allowed[..., None, :]
        result = self.attend(self.query.to(states.dtype), states, lengths=lengths, allowed=allowed, weights=weights)
        return Result(result.context.squeeze(-2), None if result.weights is None else result.weights.squeeze(-3))


def _checked(
    score: FeatureScore, pattern: Pattern | str, normalizer: Normalizer | str
) -> tuple[FeatureScore, Pattern, Entmax]:
    """Return score, pattern and normalizer, checked and read from their text."""
    fixed, entmax = read_pattern(pattern), read_normalizer(normalizer)
    if not isinstance(score, FeatureScore):
        raise TypeError(f"score: expected a FeatureScore, got {score!r}")
    if not isinstance(fixed, Pattern) or isinstance(fixed, PerHead):
        raise ValueError(f"pattern: expected one that all features share, got {fixed}")
    if not isinstance(entmax, Entmax):
        raise ValueError(f"normalizer: expected one that weighs all keys, got {entmax}")
    return score, fixed, entmax


def _blocks(pairs: tuple[int, ...], features: int, pattern: Pattern, position: int) -> list[tuple[int, int]]:
    """Return blocks of queries (start, stop) whose energies fit into memory, judged by a block in mid-text."""
    *leading, queries, keys = pairs
    room = _MAX_ELEMENTS // max(1, math.prod(leading) * features)
    middle = position + queries // 2
    rows = max(1, room // max(1, keys))
    while rows < queries and 2 * rows * length(pattern.spans(middle, middle + 2 * rows, keys)) <= room:
        rows *= 2
    return [(start, min(start + rows, queries)) for start in range(0, queries, rows)]


def _block_mask(
    pattern: Pattern,
    lengths: Tensor | None,
    allowed: Tensor | None,
    block: tuple[int, int],
    pairs: tuple[int, ...],
    position: int,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Return the keys [K] that some query of the block may attend to, and the mask: bool, broadcasts to [..., t, K]."""
    start, stop = position + block[0], position + block[1]
    spans = pattern.spans(start, stop, pairs[-1])
    visible = torch.cat([torch.arange(*span, device=device) for span in spans] or [torch.arange(0, device=device)])
    mask = pattern.allows(torch.arange(start, stop, device=device)[:, None], visible, pairs[-1])
    if lengths is not None:
        mask = mask & (visible < lengths)
    if allowed is not None:
        mask = mask & allowed.expand(*allowed.shape[:-2], *pairs[-2:])[..., block[0] : block[1], :][..., visible]
    return visible, mask


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visible: Tensor,
    mask: Tensor,
    score: FeatureScore,
    normalizer: Entmax,
    dropout: float,
    seed: int,
    weights: bool,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Return (context [..., features, t, 1], weights [..., features, t, K] or None, visible [K]) of one block."""
    all_keys = len(visible) == key.shape[-2]
    result = attention(
        query,
        key if all_keys else key[..., visible, :],
        value if all_keys else value[..., visible, :],
        score=score,
        normalizer=normalizer,
        allowed=mask.unsqueeze(-3),
        dropout=dropout,
        weights=weights,
        generator=torch.Generator().manual_seed(seed) if dropout > 0 else None,
    )
    return result.context, result.weights, visible


def _concatenate(blocks: list[tuple[Tensor, Tensor | None, Tensor]], pairs: tuple[int, ...]) -> Result:
    """Concatenate the blocks, with the features moved back to the last dim."""
    context = torch.cat([context.squeeze(-1).mT for context, _, _ in blocks], -2)
    weights = [x.new_zeros(*x.shape[:-1], pairs[-1]).index_copy(-1, at, x) for _, x, at in blocks if x is not None]
    return Result(context, torch.cat(weights, -2).movedim(-3, -1) if weights else None)
