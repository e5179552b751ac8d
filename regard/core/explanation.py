"""A plan as text: which kernel computes, why others refused, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.core.kernels.cpu.parts import Part, Tile
from regard.core.kernels.cpu.tile_kernels import pattern_layout, regroups
from regard.core.kernels.kernel import Kernel
from regard.core.patterns import Pattern, PerHead
from regard.core.request import Request
from regard.core.spans import length

_CPU = torch.device("cpu")  # pairs are counted there, whatever the default device is


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


def _costs(request: Request, kernel: Kernel) -> list[str]:
    """Return the lines on density, FLOPs and bytes."""
    batch, pairs = request.leading.numel(), request.queries * request.keys
    if not isinstance(request.pattern, Pattern) or isinstance(request.pattern, PerHead):
        return [f"density  not counted here; all {batch * pairs:,} pairs are computed"]
    parts = pattern_layout(request).parts(regroups(request))
    # Only the doubtful parts of tiles are counted pair by pair.
    allowed = sum(_allowed_in_tile(request, part, tile) for part in parts for tile in part.all_tiles)
    density = f"density  the pattern allows {_percent(allowed, pairs)} of the pairs"
    if request.terms is None:
        return [f"{density}; all are computed"]
    computed, features = kernel.computed_pairs(request), request.value.shape[-1]
    # The FLOPs of the energies, and two for each multiply-add with values.
    flops = batch * computed * (request.terms.flops_per_pair + 2 * features)
    # Context and lse, or all weights and the energies twice.
    numbers = batch * request.queries * (3 * request.keys if kernel.saves_weights else features + 1)
    mebibytes = numbers * max(4, request.query.element_size()) / 2**20
    return [
        f"{density}; {_percent(computed, pairs)} are computed",
        f"work     {flops / 1e9:,.3f} GFLOP forward",
        f"memory   {mebibytes:,.2f} MiB saved for the backward pass, besides the inputs",
    ]


def _percent(count: int, pairs: int) -> str:
    return f"{100 * count / max(1, pairs):.2f} %"


def _allowed_in_tile(request: Request, part: Part, tile: Tile) -> int:
    """Return how many pairs of one tile are allowed and belong to this part, over all its residue classes."""
    step, replaced = part.step, set(tile.replaced)
    rows = tile.row_index(_CPU)[[row for row in range(tile.height) if row not in replaced]]
    # Where residue classes are padded at an end, every pair is checked.
    padded = any(n % step for n in (request.position, request.queries, request.keys))
    checked = tile.spans if padded else tile.doubtful
    residue = torch.arange(step, device=_CPU)[:, None, None]
    i = (rows[:, None] + request.position // step) * step + residue  # [step, R, 1]
    columns = [c for lo, hi in checked for c in range(lo, hi)]
    j = torch.tensor(columns, dtype=torch.int64, device=_CPU) * step + residue  # [step, 1, C]
    allowed = part.pattern.allows(i, j, request.keys) & (j < request.keys)
    allowed = allowed & (i >= request.position) & (i < request.position + request.queries)
    if part.without is not None:
        allowed = allowed & ~part.without.allows(i, j, request.keys)
    certain = step * len(rows) * (tile.width - length(checked))
    return certain + int(allowed.sum())
