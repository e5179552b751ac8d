"""Which kernel is chosen, and what is said about it."""

import pytest
import torch

from regard import Additive, Hard, LocalPredictive, Score, Softmax, Sparsemax, attention, parse_pattern, plan
from regard.core.kernels.dense import Dense
from regard.core.kernels.gpu import kernels
from regard.core.kernels.gpu.kernels import Classes, FusedDot
from regard.core.kernels.hard import DenseHard
from regard.core.kernels.kernel import Kernel
from regard.core.plan import Plan

Q = torch.zeros(2, 4, 600, 8)


def chosen(**arguments) -> str:  # type: ignore[no-untyped-def]
    return plan(Q, Q, Q, **arguments).kernel.name


@pytest.mark.parametrize(
    ("arguments", "kernel"),
    [
        ({}, "dense"),
        ({"pattern": "causal"}, "dense"),
        ({"lengths": [600, 3]}, "dense"),
        ({"pattern": "causal", "position": 2}, "tiles"),
        ({"pattern": "window(9)"}, "tiles"),
        ({"pattern": "bigbird(8, [0], random=1, block=4)"}, "tiles"),
        ({"score": Additive(8, 8, 4)}, "tiles"),
        ({"normalizer": Sparsemax()}, "tiles"),
        ({"dropout": 0.1}, "tiles"),
        ({"bias": torch.zeros(600, 600, requires_grad=True)}, "tiles"),
        ({"pattern": "strided(5)"}, "regrouped"),
        ({"pattern": "dilated(2, 5) & causal", "normalizer": Sparsemax()}, "regrouped"),
        ({"pattern": "window(9) | strided(5)"}, "union"),
        ({"pattern": "(window(9) | strided(5)) & causal"}, "union"),
        ({"pattern": "window(9) | strided(5)", "normalizer": Sparsemax()}, "tiles"),
        ({"pattern": "strided(5)", "bias": torch.zeros(600, 600)}, "tiles"),
        ({"pattern": "per_head(full, causal, window(3), strided(2))"}, "heads"),
        ({"normalizer": Hard()}, "hard"),
        ({"pattern": LocalPredictive(8, 4)}, "reference"),
    ],
)
def test_the_first_that_takes_it(arguments: dict, kernel: str) -> None:
    assert chosen(**arguments) == kernel


def test_small_patterns_are_dense() -> None:
    small, smaller = torch.zeros(20, 8), torch.zeros(16, 8)
    assert plan(small, small, small, pattern="window(2) | strided(3)").kernel.name == "dense"
    assert plan(smaller, smaller, smaller, pattern="window(2) | strided(3)").kernel.name == "small dense"


def test_explain_names_every_refusal_density_and_cost() -> None:
    message = plan(Q, Q, Q, pattern="window(9) | global(0)", normalizer=Softmax(0.5)).explain()
    for part in (
        "attention of 2 × 4 × 600 queries to 600 keys: ScaledDot, window(9) | global(0), Softmax(temperature=0.5)",
        "kernel   tiles",
        "not dense: the pattern would become a mask of 600 × 600",
        "not regrouped: the pattern has no stride",
        "not union: the pattern has no stride",
        "density",
        "GFLOP",
        "MiB",
    ):
        assert part in message


@pytest.mark.parametrize(
    "text",
    ["window(9) | global(0, 77)", "strided(7)", "window(4) | strided(7) | global(3)", "causal", "random(2, 16, 1)"],
)
@pytest.mark.parametrize("position", [0, 37])
def test_density_is_exact(text: str, position: int) -> None:
    remaining = parse_pattern(text).mask(600, 600, position).double().mean()
    message = plan(Q, Q, Q, pattern=text, position=position).explain()
    assert f"allows {100 * float(remaining):.2f} % of the pairs" in message


def test_explain_knows_the_density_for_a_score_of_ones_own() -> None:
    class Distance(Score):
        def energies(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
            return -torch.cdist(query, key)

    message = plan(Q, Q, Q, score=Distance(), pattern="causal").explain()
    assert "kernel   reference" in message and "Distance is neither bilinear nor additive" in message
    assert "allows 50.08 % of the pairs; all are computed" in message


def test_explain_speaks_for_each_head() -> None:
    message = plan(Q, Q, Q, pattern="per_head(full, window(3), full, strided(2))").explain()
    assert "heads 0, 2" in message and "heads 3" in message and "regrouped" in message


def test_nothing_forms_the_matrix_of_a_long_sequence() -> None:
    """335 GiB of weights, in the memory of a test."""
    x = torch.randn(1, 1, 300_000, 2)
    out = attention(x, x, x, pattern="window(1) | global(0)", top=1)
    assert out.context.shape == x.shape


@pytest.mark.parametrize(
    ("size", "dtype", "precision", "taken"),
    [
        (600, torch.float32, "high", False),
        (500, torch.float32, "high", True),
        (600, torch.float32, "highest", True),
        (600, torch.bfloat16, "high", True),
    ],
)
def test_large_float32_goes_along_blocks_where_kernels_are_and_products_may_be_rounded(
    monkeypatch: pytest.MonkeyPatch, size: int, dtype: torch.dtype, precision: str, taken: bool
) -> None:
    pytest.importorskip("triton", minversion="3.4")
    states = torch.zeros(2, size, 8, dtype=dtype)
    request = plan(states, states, states, lengths=[size, 3]).request
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: precision)
    assert Dense().refuse(request) is None  # on a CPU
    monkeypatch.setattr(kernels, "why_no_triton", lambda _: None)
    assert (Dense().refuse(request) is None) == taken


@pytest.mark.parametrize(
    ("kernel", "pattern", "fraction"),
    [
        (
            FusedDot(),
            "window(64)",
            (3 * 16 - 2) / 16**2,
        ),  # the diagonal of 16 × 16 blocks and its neighbours
        (FusedDot(), "full", 1.0),
        (FusedDot(), "causal", 16 * 17 / 2 / 16**2),
        (Classes(), "strided(8)", 1 / 8),
        (DenseHard(), "window(64)", 1.0),
    ],
    ids=lambda each: getattr(each, "name", str(each)),
)
def test_the_explanation_counts_what_a_gpu_kernel_computes(kernel: Kernel, pattern: str, fraction: float) -> None:
    states = torch.randn(1, 1024, 8)
    text = Plan(plan(states, states, states, pattern=pattern).request, kernel, ()).explain()
    assert f"{100 * fraction:.2f} % are computed" in text, text
