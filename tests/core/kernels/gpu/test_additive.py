"""The fused additive kernel, in Triton's interpreter, against the definition in float64."""

import pytest
import torch
from torch import Tensor

from regard.core.kernels.flat import FlatRows
from regard.core.pattern_text import parse

pytest.importorskip("triton", minversion="3.4")  # older interpreters do not know the numpy of today
from regard.core.kernels.gpu import additive


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks in a small problem."""
    monkeypatch.setattr(additive, "HEIGHT", 16)
    monkeypatch.setattr(additive, "WIDTH", 32)
    monkeypatch.setattr(additive, "STRIP", 8)
    monkeypatch.setattr(additive, "VALUE_FEATURES", 16)
    monkeypatch.setattr(additive, "MIN_PIECE_BLOCKS", 0)


def expected(query: Tensor, key: Tensor, vector: Tensor, value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    pairs = torch.tanh(query[:, :, None] + key[:, None])  # [G, T, S, H]
    energies = (pairs @ vector[:, None, :, None])[..., 0].masked_fill(~mask, -torch.inf)
    empty = ~mask.any(-1, keepdim=True)
    weights = torch.softmax(energies.masked_fill(empty, 0), -1).masked_fill(empty, 0)
    return weights @ value, torch.logsumexp(energies, -1)


def settings_of(
    text: str, position: int, precision: str = "ieee", **masks: FlatRows | None
) -> additive.AdditiveSettings:
    given = {"visible": None, "allowed": None} | masks
    return additive.AdditiveSettings(parse(text), position, given["visible"], given["allowed"], precision, asm=False)


def check(settings: additive.AdditiveSettings, inputs: list[Tensor], mask: Tensor, tolerance: float) -> None:
    context, lse = additive.attend(settings, *inputs)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    wanted, wanted_lse = expected(*exact, mask)
    finite = wanted_lse.isfinite()
    given, given_lse = torch.randn_like(context), torch.randn_like(lse)
    result = torch.autograd.grad((context * given).sum() + (lse * given_lse)[finite].sum(), inputs)
    right = torch.autograd.grad((wanted * given).sum() + (wanted_lse * given_lse)[finite].sum(), exact)
    assert (lse.isfinite() == finite).all()
    pairs = [(context, wanted), (lse[finite], wanted_lse[finite]), *zip(result, right, strict=True)]
    for mine, theirs in pairs:
        assert mine.shape == theirs.shape
        assert (mine.double() - theirs).norm() <= tolerance * theirs.norm() + 1e-12


def drawn(queries: int, keys: int, hidden: int, features: int) -> list[Tensor]:
    shapes = ((2, queries, hidden), (2, keys, hidden), (2, hidden), (2, keys, features))
    inputs = [torch.randn(shape) for shape in shapes]
    inputs[2] /= hidden**0.5
    return [x.requires_grad_() for x in inputs]


@pytest.mark.parametrize("text", ["full", "causal", "window(9) | global(0, 30)"])
@pytest.mark.parametrize(
    ("queries", "keys", "hidden", "features", "position"), [(20, 40, 50, 20, 5), (33, 33, 21, 16, 0)]
)
def test_as_defined(text: str, queries: int, keys: int, hidden: int, features: int, position: int) -> None:
    mask = parse(text).mask(queries, keys, position).expand(2, -1, -1)
    check(settings_of(text, position), drawn(queries, keys, hidden, features), mask, 1e-5)


def test_padding_and_masks() -> None:
    inputs = drawn(20, 40, 24, 16)
    seen = torch.arange(40) < torch.tensor([40, 13])[:, None]
    allowed = torch.rand(1, 20, 40) < 0.6
    allowed[:, 3] = False  # a row that sees nothing
    rows = torch.zeros(2, dtype=torch.int64)
    masks = {"visible": FlatRows(seen, None), "allowed": FlatRows(allowed, rows)}
    check(settings_of("full", 0, **masks), inputs, seen[:, None] & allowed, 1e-5)


@pytest.mark.parametrize("hidden", [8, 128])
def test_far_from_zero_no_exponential_overflows(hidden: int) -> None:
    """Energies kept (4 blocks are no more than 20 queries of 128 features) and computed anew, queries by pieces."""
    inputs = drawn(20, 40, hidden, 16)
    with torch.no_grad():
        inputs[0][:, 4] += 60
        inputs[1][:, 7] -= 59
    check(settings_of("full", 0), inputs, torch.ones(2, 20, 40, dtype=torch.bool), 1e-5)


@pytest.mark.parametrize(("queries", "keys"), [(0, 5), (5, 0)])
def test_nothing_to_look_at(queries: int, keys: int) -> None:
    context, lse = additive.attend(settings_of("full", 0), *drawn(queries, keys, 8, 16))
    assert not context.any() and (lse == -torch.inf).all()


def test_products_of_pairs_are_better_than_tf32() -> None:
    inputs = drawn(20, 40, 16, 24)
    check(settings_of("full", 0, "pairs"), inputs, torch.ones(2, 20, 40, dtype=torch.bool), 1e-4)


def test_one_vector_for_all_rows() -> None:
    query, key, vector, value = drawn(20, 40, 16, 24)
    shared = vector.detach()[:1].expand(2, -1).requires_grad_()
    check(settings_of("full", 0), [query, key, shared, value], torch.ones(2, 20, 40, dtype=torch.bool), 1e-5)
