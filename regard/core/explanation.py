"""A plan as text: which kernel computes, why others refused, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.core.kernels.cpu.parts import HeavyTile, Part, Tile, parts_of
from regard.core.kernels.cpu.tile_kernels import regroups
from regard.core.kernels.gpu.arrangement import arrangements_of
from regard.core.kernels.gpu.blocks import HEIGHT, WIDTH, group_blocks
from regard.core.local import LocalPredictive
from regard.core.patterns import Pattern, PerHead
from regard.core.request import Request
from regard.core.spans import length

_CPU = torch.device("cpu")  # pairs are counted there, whatever the default device is


def explain(
    request: Request,
    kernel: str,
    refusals: Sequence[tuple[str, str]],
    groups: Sequence[tuple[Sequence[int], str]] = (),
) -> str:
    """Return the kernel, every refusal with its reason, density, FLOPs and bytes as text; with a pattern per head, the
    explanation of each group of heads instead of the costs."""
    lines = [_title(request), f"kernel   {kernel}"]
    lines += [f"         not {name}: {reason}" for name, reason in refusals]
    for heads, explanation in groups:
        lines += ["", f"heads {', '.join(map(str, heads))}", *("  " + line for line in explanation.splitlines())]
    return "\n".join(lines if groups else [*lines, *_costs(request, kernel)])


def _title(request: Request) -> str:
    """Return the first line: shapes, score, pattern and normalizer."""
    shape = " × ".join(str(n) for n in (*request.leading, request.queries))
    score, normalizer = request.score.title, request.normalizer
    pattern = "LocalPredictive" if isinstance(request.pattern, LocalPredictive) else str(request.pattern)
    return f"attention of {shape} queries to {request.keys} keys: {score}, {pattern}, {normalizer}"


def _costs(request: Request, kernel: str) -> list[str]:
    """Return the lines on density, FLOPs and bytes."""
    batch, pairs = request.leading.numel(), request.queries * request.keys
    if not isinstance(request.pattern, Pattern) or isinstance(request.pattern, PerHead):
        return [f"density  not counted here; all {batch * pairs:,} pairs are computed"]
    if request.terms is None:
        return [f"density  the pattern allows {_percent(_allowed(request), pairs)} of the pairs; all are computed"]
    allowed, computed = _allowed(request), _computed(request, kernel)
    computed_percent = _percent(computed, pairs)
    return [
        f"density  the pattern allows {_percent(allowed, pairs)} of the pairs; {computed_percent} are computed",
        f"work     {_flops(request, batch * computed) / 1e9:,.3f} GFLOP forward",
        f"memory   {_bytes(request, kernel) / 2**20:,.2f} MiB saved for the backward pass, besides the inputs",
    ]


def _percent(count: int, pairs: int) -> str:
    return f"{100 * count / max(1, pairs):.2f} %"


def _parts(request: Request) -> tuple[Part, ...]:
    """Return the parts into which the tile kernels split the pattern."""
    assert isinstance(request.pattern, Pattern)
    return parts_of(request.pattern, request.queries, request.keys, request.position, regroups(request))


def _computed(request: Request, kernel: str) -> int:
    """Return how many pairs a kernel computes for one row of the batch: of whole matrices, tiles or blocks."""
    assert isinstance(request.pattern, Pattern)
    if kernel in ("few queries", "small dense", "dense", "dense hard", "reference"):
        return request.queries * request.keys
    if kernel == "classes":
        return request.queries * request.keys // request.pattern.step
    if kernel.startswith("fused"):
        return _in_blocks(request, regroup=kernel != "fused additive" or regroups(request))
    return sum(
        tile.height * tile.width * part.step for part in _parts(request) for tile in (*part.tiles, *part.heavy_tiles)
    )


def _in_blocks(request: Request, regroup: bool) -> int:
    """Return how many pairs the blocks of the GPU kernels hold."""
    assert isinstance(request.pattern, Pattern)
    sizes = request.queries, request.keys, request.position
    count = 0
    for arranged in arrangements_of(request.pattern, *sizes, regroup):
        queries, keys = (len(each(_CPU)) for each in (arranged.query_positions, arranged.key_positions))
        groups = group_blocks(arranged.pattern, queries, keys, arranged.position, HEIGHT, WIDTH, _CPU)
        count += sum(blocks.count for _, blocks in groups)
    return count * HEIGHT * WIDTH


def _allowed(request: Request) -> int:
    """Return how many pairs the pattern allows. Only the doubtful parts of tiles are counted pair by pair."""
    return sum(
        _allowed_in_tile(request, part, tile) for part in _parts(request) for tile in (*part.tiles, *part.heavy_tiles)
    )


def _allowed_in_tile(request: Request, part: Part, tile: Tile) -> int:
    """Return how many pairs of one tile are allowed and belong to this part, over all its residue classes."""
    step, heavy = part.step, isinstance(tile, HeavyTile)
    rows = torch.tensor(tile.rows, device=_CPU) if heavy else torch.arange(*tile.rows, device=_CPU)
    replaced = set(tile.replaced)
    rows = rows[[row for row in range(len(rows)) if row not in replaced]]
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


def _flops(request: Request, pairs: int) -> float:
    """Return the FLOPs: those of the energies, and two for each multiply-add with values."""
    terms = request.terms
    assert terms is not None
    return float(pairs) * (terms.flops_per_pair + 2 * request.value.shape[-1])


def _bytes(request: Request, kernel: str) -> float:
    """Return the bytes saved for backward: context and lse; the reference saves all weights and the energies twice."""
    size = max(4, request.query.element_size())
    rows = request.leading.numel() * request.queries
    if kernel == "reference":
        return 3.0 * size * rows * request.keys
    return float(size) * rows * (request.value.shape[-1] + 1)
