"""The kernel along blocks, in Triton's interpreter, against torch's own attention in float64."""

from itertools import product

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from regard.core.kernels.flat import FlatRows
from regard.core.pattern_text import parse
from regard.runtime.caches import clear_caches

pytest.importorskip("triton", minversion="3.4")  # older interpreters do not know the numpy of today
from regard.core.kernels.gpu import blocks, dot, jobs, query_groups
from regard.core.kernels.gpu.dot_problem import DotSettings

LENGTHS = torch.tensor([150, 40])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks and several jobs a tile, in a small problem."""
    monkeypatch.setattr(blocks, "HEIGHT", 16)
    monkeypatch.setattr(blocks, "WIDTH", 16)
    monkeypatch.setattr(jobs, "MIN_BLOCKS", 4)
    clear_caches()


def expected(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """(context, lse) in float64; rows without a key give 0 and −inf"""
    energies = (query @ key.mT * scale).masked_fill(~mask, -torch.inf)
    context = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
    return torch.where(mask.any(-1, keepdim=True), context, 0.0), torch.logsumexp(energies, -1)


@pytest.mark.parametrize(
    ("text", "padded"),
    [
        ("window(20)", False),
        ("window(20, 0)", True),
        ("window(9) | global(0, 70)", False),
        ("window(9) | global(0, 70)", True),
        ("bigbird(8, 0, 2, 16)", False),
        ("full", True),
        ("strided(7)", False),
        ("dilated(3, 5)", True),
        ("strided(4) & causal", False),
        ("window(9) | global(0, 70) | strided(7)", True),
        ("dilated(2, 3) | dilated(2, 8)", False),
        ("strided(200)", False),
    ],
)
@pytest.mark.parametrize(("queries", "keys", "position"), [(150, 150, 0), (37, 150, 100)])
@pytest.mark.parametrize("precision", ["ieee", "tf32"], ids=["one loop", "two loops"])  # the interpreter rounds nothing
def test_as_torchs_own(text: str, padded: bool, queries: int, keys: int, position: int, precision: str) -> None:
    pattern, scale = parse(text), 0.3
    inputs = [
        torch.randn(2, size, width, requires_grad=True) for size, width in ((queries, 24), (keys, 24), (keys, 20))
    ]
    seen = torch.arange(keys) < LENGTHS[:, None] if padded else torch.ones(2, keys, dtype=torch.bool)
    mask = pattern.mask(queries, keys, position) & seen[:, None]
    settings = DotSettings(pattern, position, FlatRows(seen, None) if padded else None, scale, precision)
    context, lse = dot.attend(settings, *inputs)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    wanted, wanted_lse = expected(*exact, mask, scale)
    torch.testing.assert_close(context, wanted.float(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(lse, wanted_lse.float(), atol=1e-5, rtol=1e-5)
    given, given_lse = torch.randn_like(context), torch.randn_like(lse)
    finite = wanted_lse.isfinite()
    result = torch.autograd.grad((context * given).sum() + (lse * given_lse)[finite].sum(), inputs)
    right = torch.autograd.grad((wanted * given).sum() + (wanted_lse * given_lse)[finite].sum(), exact)
    for mine, theirs in zip(result, right, strict=True):
        torch.testing.assert_close(mine, theirs.float(), atol=3e-5, rtol=1e-4)


def test_masks_of_both_parts_have_one_form() -> None:
    """So that one compiled kernel serves both."""
    light, heavy = query_groups.query_groups_of(parse("window(9) | global(0, 70)"), 150, 150, 0, torch.device("cpu"))
    assert heavy is not None and not light.intervals and not heavy.intervals
    light, heavy = query_groups.query_groups_of(parse("window(9) | global(0)"), 9, 150, 0, torch.device("cpu"))
    assert heavy is not None and light.intervals and heavy.intervals


def test_heavy_rows_and_long_lists_are_there() -> None:
    parts = query_groups.query_groups_of(parse("window(9) | global(0, 70)"), 150, 150, 0, torch.device("cpu"))
    assert len(parts) == 2 and parts[1].rows is not None and parts[1].rows.tolist() == [0, 70]
    assert parts[1].by_query.parts > 1


@pytest.mark.parametrize(("queries", "keys"), list(product([0, 5], [0, 7])))
def test_nothing_to_look_at(queries: int, keys: int) -> None:
    inputs = [torch.randn(2, size, 16, requires_grad=True) for size in (queries, keys, keys)]
    context, lse = dot.attend(DotSettings(parse("window(2)"), 20, None, 1.0, "ieee"), *inputs)
    assert context.shape == (2, queries, 16) and not context.any()
    assert (lse == -torch.inf).all()
    for gradient in torch.autograd.grad(context.sum(), inputs):
        assert not gradient.any()


@pytest.mark.parametrize(
    ("text", "stretches"), [("window(20)", True), ("causal", True), ("window(3) | global(5, 9)", False)]
)
def test_masks_are_stretches_of_keys_where_each_is_one(text: str, stretches: bool) -> None:
    light, _ = query_groups.query_groups_of(parse(text), 100, 100, 0, torch.device("cpu"))
    assert light.intervals == stretches
