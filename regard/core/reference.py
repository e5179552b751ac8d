"""The reference implementation, which defines attention for every score, pattern and normalizer.

    energies = score(query, key) + bias                           [..., T, S], −inf where masked
    weights  = normalizer(energies) · gain                        [..., T, S]
    context  = dropout(weights) value                             [..., T, Dv]

Every other kernel must return the same. It materializes [..., T, S], and for additive scores [..., T, S, H].
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core import checks
from regard.core.local import LocalPredictive
from regard.core.normalizers import Entmax, Hard, Softmax
from regard.core.request import Request
from regard.core.result import Result
from regard.core.scores import at_least_float32
from regard.runtime import noise


def reference(request: Request) -> Result:
    """Return the context, the weights, and for Hard the chosen keys."""
    return result_of(request, defined_energies(request))


def result_of(request: Request, energies: Tensor) -> Result:
    """Return the result from the score's energies [..., T, S]."""
    weights, chosen, log_probability = weights_of(request, energies)
    context = drop(request, weights).to(request.value.dtype) @ request.value
    return Result(context, weights=weights, chosen=chosen, log_probability=log_probability)


def defined_energies(request: Request) -> Tensor:
    """Return the energies by the score's definition; by its terms for k', and in half precision."""
    half = request.query.dtype in (torch.float16, torch.bfloat16)
    if request.terms is not None and (half or request.remembered):
        return request.terms.energies()
    energies = request.score.energies(request.query, request.key)
    wanted = (*request.leading, request.queries, request.keys)
    return checks.energies(request.score.title, energies, wanted)


def weights_of(request: Request, energies: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return from the score's energies: weights [..., T, S]; for Hard the chosen keys and their log-probability."""
    energies, gain = masked_energies(request, energies)
    chosen = log_probability = None
    if isinstance(request.normalizer, Hard):
        weights, chosen = choose(request, energies, request.normalizer)
        log_probability = log_probability_of(energies, chosen)
    else:
        assert isinstance(request.normalizer, Entmax)
        weights = request.normalizer(energies)
    return weights if gain is None else weights * gain, chosen, log_probability


def masked_energies(request: Request, energies: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return (energies + bias, −inf where masked, in float32 or better; the gain of predictive local attention)."""
    energies = at_least_float32(energies).expand(*request.leading, request.queries, request.keys)
    if request.bias is not None:
        energies = energies + request.bias
    mask, gain = request.mask(), None
    if isinstance(request.pattern, LocalPredictive):
        counts = request.lengths if request.lengths is not None else torch.tensor(request.keys, device="cpu")
        near, gain = request.pattern.focus(
            request.query, counts.to(request.query.device)[..., None, None], request.keys
        )
        mask = near if mask is None else mask & near
    return (energies if mask is None else energies.masked_fill(~mask, -torch.inf)), gain


def choose(request: Request, energies: Tensor, hard: Hard) -> tuple[Tensor, Tensor]:
    """Return (weights: 1 at the chosen key, with the estimator's gradient; the chosen key, −1 where all is masked)."""
    if hard.sample:
        energies = energies + noise.gumbel(request.noise_seed, *counters(request), dtype=energies.dtype)
    if not request.keys:
        return energies, torch.full(energies.shape[:-1], -1, device=energies.device)
    chosen = energies.argmax(-1).masked_fill((energies == -torch.inf).all(-1), -1)
    weights = torch.zeros_like(energies).scatter(
        -1, chosen.clamp(min=0)[..., None], (chosen >= 0)[..., None].to(energies)
    )
    if hard.surrogate is not None:
        soft = hard.surrogate(energies)
        weights = weights.detach() + (soft - soft.detach())
    return weights, chosen


def log_probability_of(energies: Tensor, chosen: Tensor) -> Tensor:
    """Return log softmax(energies) at the chosen key, [..., T]; 0, with gradient 0, where nothing was chosen."""
    if not energies.shape[-1]:
        return torch.zeros_like(chosen, dtype=energies.dtype)
    fully_masked = chosen < 0
    safe = energies.masked_fill(fully_masked[..., None], 0)
    at_chosen = safe.gather(-1, chosen.clamp(min=0)[..., None]).squeeze(-1)
    return (at_chosen - safe.logsumexp(-1)).masked_fill(fully_masked, 0)


def log_sum_exp(request: Request, energies: Tensor) -> Tensor:
    """Return the natural log of Σ exp(energies / temperature), [..., T]; −inf, with gradient 0, where all is masked."""
    energies, _ = masked_energies(request, energies)
    if not request.keys:
        return energies.new_full(energies.shape[:-1], -torch.inf)
    assert isinstance(request.normalizer, Softmax)
    fully_masked = (energies == -torch.inf).all(-1)
    safe = energies.masked_fill(fully_masked[..., None], 0) / request.normalizer.temperature
    return safe.logsumexp(-1).masked_fill(fully_masked, -torch.inf)


def drop(request: Request, weights: Tensor) -> Tensor:
    """Set each weight to 0 with probability `dropout`, and divide the others by 1 − dropout."""
    if request.dropout == 0:
        return weights
    keep = noise.uniform(request.seed, *counters(request), dtype=weights.dtype) >= request.dropout
    return weights * keep / (1 - request.dropout)


def counters(request: Request) -> tuple[Tensor, Tensor, Tensor]:
    """Return the counters that identify a pair for counter-based noise: the row of the batch, i and j."""
    i = torch.arange(request.position, request.position + request.queries, device=request.query.device)
    j = torch.arange(request.keys, device=request.query.device)
    return request.rows[..., None, None], i[:, None], j
