"""A plan as text: which kernel computes, why others refused, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.core.kernels.kernel import Kernel
from regard.core.pair_counts import count_pairs
from regard.core.patterns import Pattern, PerHead
from regard.core.request import Request


def explain(
    request: Request, kernel: Kernel, refusals: Sequence[tuple[str, str]], groups: Sequence[tuple[Sequence[int], str]]
) -> str:
    """Return the kernel, every refusal with its reason, density, FLOPs and bytes as text; with a pattern per head, the
    explanation of each group of heads instead of the costs."""
    lines = [request.describe(), f"kernel   {kernel.name}"]
    lines += [f"         not {name}: {reason}" for name, reason in refusals]
    for heads, explanation in groups:
        lines += ["", f"heads {', '.join(map(str, heads))}", *("  " + line for line in explanation.splitlines())]
    return "\n".join(lines if groups else [*lines, *_costs(request, kernel)])


@dataclass(frozen=True)
class Costs:
    """What a kernel does for a request, over all rows of the batch and all heads."""

    computed_pairs: int
    """of a query and a key"""
    flops: int
    """of the energies, and two for each multiply-add with values"""
    saved_bytes: int
    """for the backward pass, besides the inputs: context and lse, or all weights and the energies twice"""


def costs(request: Request, kernel: Kernel) -> Costs:
    """Return the costs of a request whose score has terms."""
    assert request.terms is not None
    batch, features = request.leading.numel(), request.value.shape[-1]
    computed = batch * kernel.computed_pairs(request)
    numbers = batch * request.queries * (3 * request.keys if kernel.saves_weights else features + 1)
    flops = computed * (request.terms.flops_per_pair + 2 * features)
    return Costs(computed, flops, numbers * max(4, request.query.element_size()))


def _costs(request: Request, kernel: Kernel) -> list[str]:
    """Return the lines on density, FLOPs and bytes."""
    batch, pairs = request.leading.numel(), request.queries * request.keys
    if not isinstance(request.pattern, Pattern) or isinstance(request.pattern, PerHead):
        return [f"density  not counted here; all {batch * pairs:,} pairs are computed"]
    counts = count_pairs(request.pattern, request.queries, request.keys, request.position, sample=8192)
    about = "about " if counts.counted_queries < request.queries else ""
    density = f"density  the pattern allows {about}{_percent(counts.allowed, pairs)} of the pairs"
    if request.terms is None:
        return [f"{density}; all are computed"]
    total = costs(request, kernel)
    return [
        f"{density}; {_percent(total.computed_pairs, batch * pairs)} are computed",
        f"work     {total.flops / 1e9:,.3f} GFLOP forward",
        f"memory   {total.saved_bytes / 2**20:,.2f} MiB saved for the backward pass, besides the inputs",
    ]


def _percent(count: float, pairs: int) -> str:
    return f"{100 * count / max(1, pairs):.2f} %"
