"""A plan in words: who computes, who refused and why, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.core.kernels.cpu.parts import HeavyTile, Part, Tile, parts_of
from regard.core.kernels.cpu.tile_kernels import regroups
from regard.core.local import LocalPredictive
from regard.core.patterns import Pattern, PerHead
from regard.core.request import Request
from regard.core.scores import AdditiveTerms
from regard.core.spans import length

_CPU = torch.device("cpu")  # whatever device is the default: pairs are counted there


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
    shape = " × ".join(str(n) for n in (*request.leading, request.queries))
    score, normalizer = request.score.title, request.normalizer
    pattern = "LocalPredictive" if isinstance(request.pattern, LocalPredictive) else str(request.pattern)
    return f"attention of {shape} queries to {request.keys} keys: {score}, {pattern}, {normalizer}"


def _costs(request: Request, kernel: str) -> list[str]:
    batch, pairs = request.leading.numel(), request.queries * request.keys
    if not isinstance(request.pattern, Pattern) or isinstance(request.pattern, PerHead):
        return [f"density  not counted here; all {batch * pairs:,} pairs are computed"]
    if request.terms is None:
        return [f"density  the pattern allows {_percent(_kept(request), pairs)} of the pairs; all are computed"]
    kept, computed = _count(request) if kernel not in ("dense", "reference") else (_kept(request), pairs)
    computed_share = _percent(computed, pairs)
    return [
        f"density  the pattern allows {_percent(kept, pairs)} of the pairs; {computed_share} are computed",
        f"work     {_flops(request, batch * computed) / 1e9:,.3f} GFLOP forward",
        f"memory   {_bytes(request, kernel) / 2**20:,.2f} MiB kept for the backward pass beside the inputs",
    ]


def _percent(some: int, pairs: int) -> str:
    return f"{100 * some / max(1, pairs):.2f} %"


def _parts(request: Request) -> tuple[Part, ...]:
    assert isinstance(request.pattern, Pattern)
    return parts_of(request.pattern, request.queries, request.keys, request.position, regroups(request))


def _count(request: Request) -> tuple[int, int]:
    """(pairs that the pattern allows, pairs in the tiles), for one row of the batch."""
    return _kept(request), sum(
        tile.height * tile.width * part.step for part in _parts(request) for tile in (*part.tiles, *part.heavy_tiles)
    )


def _kept(request: Request) -> int:
    """Counted in the doubtful parts of the tiles, added up elsewhere: O(what is computed)."""
    return sum(
        _kept_of_tile(request, part, tile) for part in _parts(request) for tile in (*part.tiles, *part.heavy_tiles)
    )


def _kept_of_tile(request: Request, part: Part, tile: Tile) -> int:
    """Pairs of one tile that are real and the part's own, over all its classes."""
    step, heavy = part.step, isinstance(tile, HeavyTile)
    rows = torch.tensor(tile.rows, device=_CPU) if heavy else torch.arange(*tile.rows, device=_CPU)
    replaced = set(tile.replaced)
    rows = rows[[row for row in range(len(rows)) if row not in replaced]]
    # Where classes are filled up at an end, every pair is asked about.
    filled = any(n % step for n in (request.position, request.queries, request.keys))
    asked = tile.spans if filled else tile.doubtful
    residue = torch.arange(step, device=_CPU)[:, None, None]
    i = (rows[:, None] + request.position // step) * step + residue  # [step, R, 1]
    columns = [c for lo, hi in asked for c in range(lo, hi)]
    j = torch.tensor(columns, dtype=torch.int64, device=_CPU) * step + residue  # [step, 1, C]
    allowed = part.pattern.allows(i, j, request.keys) & (j < request.keys)
    allowed = allowed & (i >= request.position) & (i < request.position + request.queries)
    if part.without is not None:
        allowed = allowed & ~part.without.allows(i, j, request.keys)
    certain = step * len(rows) * (tile.width - length(asked))
    return certain + int(allowed.sum())


def _flops(request: Request, pairs: int) -> float:
    """Two for each multiply and add; an additive pair costs about four for each hidden unit."""
    terms = request.terms
    assert terms is not None
    each = 4 if isinstance(terms, AdditiveTerms) else 2
    return float(pairs) * (each * terms.query.shape[-1] + 2 * request.value.shape[-1])


def _bytes(request: Request, kernel: str) -> float:
    """What is kept for the backward pass: context and lse; of the reference all weights, and its energies twice."""
    size = max(4, request.query.element_size())
    rows = request.leading.numel() * request.queries
    if kernel == "reference":
        return 3.0 * size * rows * request.keys
    return float(size) * rows * (request.value.shape[-1] + 1)
