"""Requests through the kernels for a GPU, in Triton's interpreter, against the reference."""

import pytest
import torch

from regard.core.attention import plan
from regard.core.pattern_text import parse
from regard.core.reference import reference
from regard.core.request import Request
from regard.core.scores import Additive

pytest.importorskip("triton", minversion="3.4")  # older interpreters do not know the numpy of today
from regard.core.kernels.gpu.kernels import Classes, FusedAdditive, FusedDot, FusedHard
from regard.core.normalizers import Hard


def request(pattern: str, keys: int = 24, additive: bool = False, padded: bool = True) -> Request:
    states = [torch.randn(2, 2, keys, 16, requires_grad=True) for _ in range(3)]
    score = Additive(16, 16, hidden=12, heads=2) if additive else "scaled_dot"
    lengths = [keys, 9] if padded else None
    return plan(*states, score=score, pattern=parse(pattern), lengths=lengths).request


@pytest.mark.parametrize(
    ("kernel", "asked"),
    [
        (FusedDot(), request("window(3) | global(0)")),
        (FusedDot(), request("window(3) | global(0) | strided(5)")),
        (FusedAdditive(), request("window(3) | global(0)", additive=True)),
        (FusedAdditive(), request("dilated(2, 3)", additive=True)),
        (FusedAdditive(), request("window(1, 0) | strided(5) & causal", additive=True)),
        (Classes(), request("strided(4)", padded=False)),
    ],
    ids=["fused", "fused union", "fused additive", "fused additive dilated", "fused additive union", "classes"],
)
def test_as_the_reference(kernel: FusedDot | FusedAdditive | Classes, asked: Request) -> None:
    result, expected = kernel.run(asked), reference(asked)
    torch.testing.assert_close(result.context, expected.context, atol=1e-5, rtol=1e-4)
    if result.lse is not None and expected.lse is not None:
        torch.testing.assert_close(result.lse, expected.lse, atol=1e-5, rtol=1e-4)
    given = torch.randn_like(expected.context)
    states = asked.query, asked.key, asked.value
    ours, theirs = (
        torch.autograd.grad((each.context * given).sum(), states, retain_graph=True) for each in (result, expected)
    )
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


def test_they_are_for_a_gpu() -> None:
    for kernel in (FusedDot(), FusedAdditive(), Classes()):
        assert kernel.refuse(request("window(3)")) == "not on a GPU"


@pytest.mark.parametrize(
    "normalizer", [Hard(), Hard(temperature=0.5), Hard("gumbel", sample=True), Hard("reinforce", sample=True)]
)
@pytest.mark.parametrize("pattern", ["window(3) | global(0)", "full", "window(0, 3)", "window(1) | strided(5)"])
def test_hard_attention_as_the_reference(normalizer: Hard, pattern: str) -> None:
    states = [torch.randn(2, 2, 24, 16, requires_grad=True) for _ in range(3)]
    asked = plan(*states, pattern=parse(pattern), lengths=[24, 9], normalizer=normalizer).request
    result, expected = FusedHard().run(asked), reference(asked)
    torch.testing.assert_close(result.chosen, expected.chosen)
    torch.testing.assert_close(result.log_probability, expected.log_probability, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(result.context, expected.context, atol=1e-5, rtol=1e-4)
    given = torch.randn_like(expected.context), torch.randn_like(expected.log_probability)
    losses = [(each.context * given[0]).sum() + (each.log_probability * given[1]).sum() for each in (result, expected)]
    ours, theirs = (torch.autograd.grad(loss, states, retain_graph=True) for loss in losses)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("given", [{"lengths": [30]}, {"lengths": 30}, {"allowed": torch.arange(40) != 7}])
@pytest.mark.parametrize("kernel", [FusedDot(), FusedAdditive(), FusedHard()], ids=lambda kernel: kernel.name)
def test_what_all_rows_share(kernel: FusedDot | FusedAdditive | FusedHard, given: dict[str, object]) -> None:
    states = torch.randn(1, 8, 40, 16)
    score = Additive(16, 16, hidden=12, heads=8) if isinstance(kernel, FusedAdditive) else "scaled_dot"
    normalizer = Hard() if isinstance(kernel, FusedHard) else "softmax"
    if "allowed" in given and not isinstance(kernel, FusedAdditive):
        pytest.skip("it takes no mask of pairs")
    asked = plan(
        states, states, states, score=score, pattern=parse("window(3)"), normalizer=normalizer, **given
    ).request  # type: ignore[arg-type]
    torch.testing.assert_close(kernel.run(asked).context, reference(asked).context, atol=1e-5, rtol=1e-4)


def test_places_without_a_query_are_seen_by_nobody() -> None:
    """However cold: there noise alone would decide, and overflow."""
    states = [torch.randn(4, 100, 16, requires_grad=True) for _ in range(3)]
    asked = plan(*states, pattern=parse("strided(33)"), normalizer=Hard("gumbel", 0.05, sample=True)).request
    result, expected = FusedHard().run(asked), reference(asked)
    ours, theirs = (torch.autograd.grad(each.context.sum(), states, retain_graph=True) for each in (result, expected))
    torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-2)


def test_one_query_and_a_stride() -> None:
    query, keys = torch.randn(2, 1, 16), torch.randn(2, 50, 16)
    asked = plan(query, keys, keys, pattern=parse("window(2) | strided(8)"), position=37).request
    torch.testing.assert_close(FusedDot().run(asked).context, reference(asked).context, atol=1e-5, rtol=1e-4)


def test_no_number_is_not_hidden() -> None:
    query, key = torch.randn(1, 20, 16), torch.randn(1, 20, 16)
    key[0, 5] = torch.nan
    asked = plan(query, key, torch.randn(1, 20, 16), pattern=parse("window(3)"), normalizer=Hard("reinforce")).request
    result, expected = FusedHard().run(asked), reference(asked)
    torch.testing.assert_close(result.chosen, expected.chosen)
    assert result.log_probability is not None and result.log_probability[0, 5].isnan()
