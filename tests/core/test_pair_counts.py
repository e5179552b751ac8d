"""The counted pairs of a pattern are those of its mask."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

import regard
from regard.core.explanation import costs
from regard.core.pair_counts import count_pairs
from regard.core.pattern_text import parse
from regard.core.patterns import Pattern

TEXTS = (
    "full", "causal", "window(4)", "window(0, 3)", "strided(8)", "dilated(4, 3)", "global(0, 7:9)",
    "blocks([[0, 2], [1]], 7)",
    "window(4) | global(0) | strided(8)", "strided(8) | strided(6) | strided(5) | window(3)", "longformer(8, 0:3, 16)",
    "bigbird(8, [0, 1], 3, 4)", "causal & (strided(4) | window(2) | global(3, 7))", "grid(6, 5).axial",
    "grid(6, 5, 1).window(1)",
    "strided(2) | strided(3) | strided(5) | strided(7) | strided(11) | strided(13) | strided(17)",
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("queries", "keys", "position"), [(37, 37, 0), (50, 31, 0), (9, 40, 31), (90, 90, 0)])
def test_counts_are_those_of_the_mask(text: str, queries: int, keys: int, position: int) -> None:
    pattern = parse(text)
    mask = pattern.mask(queries, keys, position).float()
    counts = count_pairs(pattern, queries, keys, position, max_cells=32)
    assert counts.allowed == float(mask.sum()) and counts.counted_queries == queries
    pooled = torch.nn.functional.avg_pool2d(mask[None], counts.side, ceil_mode=True)[0]
    np.testing.assert_allclose(counts.cells, pooled.numpy(), atol=1e-6)


@pytest.mark.parametrize("text", TEXTS)
def test_samples_come_near(text: str) -> None:
    pattern = parse(text)
    exact, sampled = count_pairs(pattern, 600, 600), count_pairs(pattern, 600, 600, sample=160)
    assert sampled.counted_queries < 600
    assert sampled.allowed == pytest.approx(exact.allowed, rel=0.05, abs=300)


def test_a_million_positions_take_moments() -> None:
    start = time.perf_counter()
    counts = count_pairs(parse("window(4) | global(0) | strided(8)"), 10**6, 10**6)
    assert counts.allowed / 10**12 == pytest.approx(0.12501, abs=1e-4)
    assert time.perf_counter() - start < 10  # 0.2 s on a machine that does nothing else


@dataclass(frozen=True)
class Even(Pattern):
    """A pattern that lists nothing."""

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return (i + j) % 2 == 0


def test_patterns_of_ones_own() -> None:
    assert count_pairs(Even(), 20, 30).allowed == 300
    assert count_pairs(Even() | parse("window(1)"), 20, 20).allowed == float(
        (Even() | parse("window(1)")).mask(20, 20).sum()
    )


def test_a_pattern_for_each_head_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one for all heads"):
        count_pairs(parse("per_head(causal, full)"), 4, 4)


def test_costs_of_a_plan() -> None:
    states = torch.zeros(1, 2, 512, 4)
    chosen = regard.plan(states, states, states, pattern="window(4)")
    total = costs(chosen.request, chosen.kernel)
    assert total.computed_pairs == 2 * chosen.kernel.computed_pairs(chosen.request)
    assert total.flops == total.computed_pairs * (2 * 4 + 2 * 4)
    assert f"work     {total.flops / 1e9:,.3f} GFLOP forward" in chosen.explain()
