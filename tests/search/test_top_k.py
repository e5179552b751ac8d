"""The largest few, against torch's own."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.search.log_probs import BLOCK, top_k


def check(scores: Tensor, count: int) -> None:
    values, places = top_k(scores, count)
    expected = torch.topk(scores, count).values
    assert torch.equal(values, expected)
    assert values.shape == places.shape == (*scores.shape[:-1], count)
    assert torch.equal(scores.gather(-1, places), values)
    assert all(len(set(row)) == count for row in places.reshape(-1, count).tolist())


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([(), (1,), (3,), (2, 3)]),
    st.integers(1, 12),
    st.integers(0, 3000),
    st.sampled_from(["spread", "ties", "few", "none", "one"]),
    st.integers(0, 2**31),
)
def test_values_are_torchs(leading: tuple[int, ...], count: int, extra: int, kind: str, seed: int) -> None:
    torch.manual_seed(seed)
    scores = torch.randn(*leading, count + extra)
    if kind == "ties":
        scores = torch.randint(0, 4, scores.shape).float()
    elif kind == "few":  # all but a few are impossible
        scores = scores.masked_fill(torch.rand(scores.shape) < 0.99, -torch.inf)
    elif kind == "none":
        scores = torch.full_like(scores, -torch.inf)
    elif kind == "one":
        scores = torch.zeros_like(scores)
    check(scores, count)


@pytest.mark.parametrize("size", [4 * BLOCK, 5 * BLOCK - 1, 5 * BLOCK, 5 * BLOCK + 1, 9 * BLOCK + 63, 100 * BLOCK])
def test_at_the_edges_of_blocks(size: int) -> None:
    for place in (0, BLOCK - 1, BLOCK, size - 1, size // BLOCK * BLOCK - 1, min(size - 1, size // BLOCK * BLOCK)):
        scores = torch.randn(2, size)
        scores[:, place] = 100
        values, places = top_k(scores, 1)
        assert (values == 100).all() and (places == place).all()


def test_all_of_the_largest_in_one_block() -> None:
    scores = torch.randn(100 * BLOCK)
    scores[3 * BLOCK : 3 * BLOCK + 20] += 100
    check(scores, 20)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64])
def test_other_dtypes(dtype: torch.dtype) -> None:
    check((torch.randn(3, 2000) * 1000).to(dtype), 5)
