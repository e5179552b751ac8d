"""Normalizers, which turn energies into weights.

Softmax, Sparsemax and Entmax15 are the α-entmax family (Peters et al. 2019) at α = 1, 2 and 1.5:

    p = argmax over the simplex of pᵀe + H_α(p)
    ∂L/∂e = s ⊙ (g − (sᵀg) / Σs),      s = p^(2 − α), and 0 where p = 0

so all three share one backward, and differ in `weigh` (energies → weights) and `slope` (weights → s). A row in which
every energy is −inf gets weights 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor

from regard.core.checks import positive
from regard.runtime.determinism import cumulative_sum
from regard.runtime.transforms import active_transform

Estimator = Literal["straight_through", "gumbel", "reinforce"]

MASKED_ENERGY = -1e30
"""the energy of a masked key; finite, so that a row in which every key is masked has no NaN and finite gradients"""


class Normalizer:
    """Turns energies [..., S], −inf where masked, into weights [..., S]."""


class Entmax(Normalizer, ABC):
    """A member of the α-entmax family. A custom one defines `weigh` and `slope`, and runs on the tile kernels.

    The gradient of the energies is s ⊙ (g − (sᵀg) / Σs) with s = `slope(weights)`. This must hold for your weights;
    otherwise override `backward`. Forward-mode derivatives use it too, so the Jacobian must be symmetric for them.
    """

    @abstractmethod
    def weigh(self, energies: Tensor) -> Tensor:
        """Return weights that are ≥ 0 and sum to 1, or are all 0 where every energy is −inf; without gradient."""

    @abstractmethod
    def slope(self, weights: Tensor) -> Tensor:
        """Return s = p^(2 − α), 0 where p = 0."""

    def backward(self, weights: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient of the energies from that of the weights: s ⊙ (g − (sᵀg) / Σs)."""
        slope = self.slope(weights)
        total = slope.sum(-1, keepdim=True)
        mean = (slope * gradient).sum(-1, keepdim=True) / torch.where(total == 0, 1, total)
        return slope * (gradient - mean)

    def __call__(self, energies: Tensor) -> Tensor:
        """Return the weights, differentiable."""
        transformed = not torch.compiler.is_compiling() and active_transform(energies) is not None
        function = _NormalizeTransformed if transformed else _Normalize
        return cast(Tensor, function.apply(energies, self))  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Softmax(Entmax):
    """exp(e / temperature), divided by its sum."""

    temperature: float = 1.0

    def __post_init__(self) -> None:
        positive("Softmax", "temperature", self.temperature)

    def weigh(self, energies: Tensor) -> Tensor:
        highest = energies.amax(-1, keepdim=True)
        weights = ((energies - highest.masked_fill(highest == -torch.inf, 0)) / self.temperature).exp_()
        total = weights.sum(-1, keepdim=True)
        return weights.div_(total.masked_fill_(total == 0, 1))

    def slope(self, weights: Tensor) -> Tensor:
        return weights

    def backward(self, weights: Tensor, gradient: Tensor) -> Tensor:
        return super().backward(weights, gradient) / self.temperature


@dataclass(frozen=True)
class Sparsemax(Entmax):
    """The Euclidean projection onto the simplex (Martins and Astudillo 2016): max(e − θ, 0), with exact zeros."""

    def weigh(self, energies: Tensor) -> Tensor:
        z = _shifted(energies)
        ordered = z.sort(-1, descending=True).values
        rank = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
        excess = cumulative_sum(ordered) - 1  # Σ of the k largest, less 1
        support = (rank * ordered > excess).sum(-1, keepdim=True).clamp_min_(1)  # 0 only where there is NaN
        threshold = excess.gather(-1, support - 1) / support
        return _zero_masked_rows((z - threshold).clamp_min_(0), energies)

    def slope(self, weights: Tensor) -> Tensor:
        return (weights > 0).to(weights.dtype)


@dataclass(frozen=True)
class Entmax15(Entmax):
    """α = 1.5, between softmax and sparsemax (Peters et al. 2019): max(e/2 − θ, 0)², with exact zeros.

    For the k largest z = e/2 with mean m and sum of squared deviations d, θ = m − √((1 − d) / k); k is the largest with
    θ below its smallest member.
    """

    def weigh(self, energies: Tensor) -> Tensor:
        z = _shifted(energies) / 2
        ordered = z.sort(-1, descending=True).values
        rank = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
        mean = cumulative_sum(ordered) / rank
        deviation = (cumulative_sum(ordered.square()) / rank - mean.square()) * rank
        thresholds = mean - ((1 - deviation) / rank).clamp_min_(0).sqrt_()
        support = (thresholds <= ordered).sum(-1, keepdim=True).clamp_min_(1)  # 0 only where there is NaN
        return _zero_masked_rows((z - thresholds.gather(-1, support - 1)).clamp_min_(0).pow_(2), energies)

    def slope(self, weights: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return weights.sqrt()
        zero = weights == 0  # where the square root has no derivative
        return weights.masked_fill(zero, 1).sqrt().masked_fill(zero, 0)


@dataclass(frozen=True)
class Hard(Normalizer):
    """Hard attention: all the weight is on one key.

    - `straight_through`: argmax forward, the gradient of softmax(e / temperature) backward;
    - `gumbel`: a sample from softmax(e); backward the gradient of softmax((e + noise) / temperature);
    - `reinforce`: a sample from softmax(e); no gradient from the context to the energies. Train with
      `loss = -(reward * out.log_probability)`.

    It samples only with `sample=True` (modules set it from `self.training`), else it takes the argmax. The result has
    `chosen` (−1: nothing to attend to) and `log_probability`, which is log softmax(e) at the chosen key, 0 where
    nothing was chosen.
    """

    estimator: Estimator = "straight_through"
    temperature: float = 1.0
    sample: bool = False

    def __post_init__(self) -> None:
        if self.estimator not in ("straight_through", "gumbel", "reinforce"):
            known = "'straight_through', 'gumbel' or 'reinforce'"
            raise ValueError(f"Hard: estimator: expected {known}, got {self.estimator!r}")
        positive("Hard", "temperature", self.temperature)
        if self.estimator == "straight_through" and self.sample:
            raise ValueError("Hard: sample: 'straight_through' takes the argmax; expected 'gumbel' or 'reinforce'")
        if self.estimator == "reinforce" and self.temperature != 1:
            raise ValueError(f"Hard: temperature: 'reinforce' has none, expected 1, got {self.temperature}")

    @property
    def surrogate(self) -> Softmax | None:
        """The softmax whose gradient replaces that of the choice; None for `reinforce`."""
        return None if self.estimator == "reinforce" else Softmax(self.temperature)


class _Normalize(torch.autograd.Function):
    """The α-entmax family as an autograd function: the forward of a member, and the shared backward."""

    @staticmethod
    def forward(energies: Tensor, normalizer: Entmax) -> Tensor:
        return normalizer.weigh(energies) if energies.shape[-1] else energies.clone()

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
        ctx.normalizer = inputs[1]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, gradient: Tensor):  # type: ignore[no-untyped-def]
        (weights,) = ctx.saved_tensors
        # Plain operations, so that this backward can itself be differentiated.
        return ctx.normalizer.backward(weights, gradient), None


class _NormalizeTransformed(_Normalize):
    """The same for torch.func transforms; separate, because torch.compile does not support functions with a `jvp`."""

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
        _Normalize.setup_context(ctx, inputs, output)
        ctx.save_for_forward(output)

    @staticmethod
    def jvp(ctx, tangent: Tensor, _):  # type: ignore[no-untyped-def]
        (weights,) = ctx.saved_tensors
        return ctx.normalizer.backward(weights, tangent)  # the Jacobian is symmetric


def _shifted(energies: Tensor) -> Tensor:
    """Return max(e − max e, −4): the support lies within 2 of the maximum, and −inf would turn sums into NaN."""
    highest = energies.amax(-1, keepdim=True)
    return (energies - highest.masked_fill(highest == -torch.inf, 0)).clamp_min_(-4)


def _zero_masked_rows(weights: Tensor, energies: Tensor) -> Tensor:
    """Set the weights to 0 in rows in which everything is masked."""
    return weights.masked_fill_((energies == -torch.inf).all(-1, keepdim=True), 0)
