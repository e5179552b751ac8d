"""A read by one query a row gives what the reference gives."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard import (
    Additive,
    Attention,
    Causal,
    Cosine,
    Dot,
    Entmax15,
    General,
    Hard,
    Normalizer,
    ScaledDot,
    Score,
    Softmax,
    Sparsemax,
    Window,
)
from regard.core import request as requests
from regard.core.kernels.few_queries import MAX_QUERIES, FewQueries
from regard.core.memory import Memory
from regard.core.patterns import Full
from regard.core.plan import choose
from regard.core.reference import reference
from regard.core.request import CallOptions
from regard.core.result import Result

SCORES = {
    "dot": Dot,
    "scaled": ScaledDot,
    "general": lambda: General(4, 6),
    "cosine": lambda: Cosine(2.0, learned=True),
    "additive": lambda: Additive(4, 6, 5),
    "biased": lambda: Additive(4, 6, 5, bias=True),
    "projected": lambda: Additive(None, 6, 4),
}
NORMALIZERS = [Softmax(), Softmax(0.4), Softmax(3.0), Sparsemax(), Entmax15()]
LENGTHS = [None, [7, 2, 0], [1, 7, 4], [0, 0, 0]]


def states(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def by_reference(
    query: Tensor, key: Tensor, value: Tensor, score: Score, normalizer: Normalizer, lengths: object
) -> Result:
    return reference(
        requests.read(query, key, value, CallOptions(score, Full(), normalizer), lengths)  # type: ignore[arg-type]
    )


def refusal(memory: Memory, query: Tensor, position: int = 0, bias: Tensor | None = None) -> str | None:
    owner = memory.owner
    options = CallOptions(
        owner.score,
        owner.pattern,
        owner.active_normalizer,
        bias,
        position=position,
        dropout=owner.active_dropout,
    )
    request = requests.read_cached(query, memory._states(), options)
    reason = FewQueries().refuse(request)
    assert (choose(request).kernel.name == "few queries") == (reason is None)
    return reason


def same(
    mine: Result, theirs: Result, leaves: list[Tensor], rtol: float | None = None, atol: float | None = None
) -> None:
    """Context and weights, and the gradients through both."""
    assert mine.weights is not None and theirs.weights is not None
    torch.testing.assert_close(mine.context, theirs.context, rtol=rtol, atol=atol)
    torch.testing.assert_close(mine.weights, theirs.weights, rtol=rtol, atol=atol)
    factors = torch.randn_like(theirs.context), torch.randn_like(theirs.weights)
    output, expected = (
        torch.autograd.grad((out.context * factors[0]).sum() + (out.weights * factors[1]).sum(), leaves)  # type: ignore[operator]
        for out in (mine, theirs)
    )
    torch.testing.assert_close(output, expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=str)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_one_query_is_the_reference(score: str, normalizer: Normalizer, lengths: list[int] | None) -> None:
    module = Attention(SCORES[score](), normalizer=normalizer).double()
    query, key, value = states(3, 1, 4), states(3, 7, module.score.expects()[1] or 4), states(3, 7, 2)
    memory = module.remember(key, value, lengths)
    assert refusal(memory, query) is None
    mine = memory.read(query, weights=True)
    theirs = by_reference(query, key, value, module.score, normalizer, lengths)
    same(mine, theirs, [query, key, value, *module.parameters()])
    if lengths is not None:
        for row, count in enumerate(lengths):
            assert (mine.weights[row, :, count:] == 0).all()
            assert mine.weights[row].sum().item() == pytest.approx(min(count, 1))
            assert count > 0 or (mine.context[row] == 0).all()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("normalizer", NORMALIZERS[::2], ids=str)
def test_hypotheses_share_a_memory(score: str, normalizer: Normalizer) -> None:
    """query [B, k, 1, D] over keys [B, 1, S, D]."""
    module = Attention(SCORES[score](), normalizer=normalizer).double()
    query, key = states(3, 5, 1, 4), states(3, 7, module.score.expects()[1] or 4)
    lengths = torch.tensor([7, 2, 0])
    mine = module.remember(key[:, None], lengths=lengths[:, None]).read(query, weights=True)
    assert mine.context.shape == (3, 5, 1, key.shape[-1]) and mine.weights.shape == (3, 5, 1, 7)
    spread = key[:, None].expand(-1, 5, -1, -1)
    theirs = by_reference(query, spread, spread, module.score, normalizer, lengths)
    same(mine, theirs, [query, key, *module.parameters()])


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(SCORES)),
    st.sampled_from(NORMALIZERS),
    st.sampled_from([(), (2,), (2, 3)]),
    st.integers(1, 9),
    st.floats(0.1, 30),
    st.integers(0, 2**31),
)
def test_drawn_reads(
    score: str, normalizer: Normalizer, leading: tuple[int, ...], keys: int, spread: float, seed: int
) -> None:
    torch.manual_seed(seed)
    module = Attention(SCORES[score](), normalizer=normalizer).double()
    query = (states(*leading, 1, 4) * spread).detach().requires_grad_()
    key, value = states(*leading, keys, module.score.expects()[1] or 4), states(*leading, keys, 3)
    lengths = torch.randint(0, keys + 1, leading)
    mine = module.remember(key, value, lengths).read(query, weights=True)
    theirs = by_reference(query, key, value, module.score, normalizer, lengths)
    same(mine, theirs, [query, key, value, *module.parameters()], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_a_mask_of_keys(score: str, lengths: list[int] | None) -> None:
    """A mask that is the same for all queries hides keys besides those that the memory was prepared without."""
    module = Attention(SCORES[score]()).double()
    query, key = states(3, 1, 4), states(3, 7, module.score.expects()[1] or 4)
    allowed = torch.tensor([True, False, True, True, False, True, False])
    options = CallOptions(module.score, Full(), Softmax(), allowed=allowed)
    theirs = reference(requests.read(query, key, key, options, lengths))
    mine = module.remember(key, lengths=lengths).read(query, allowed=allowed, weights=True)
    same(mine, theirs, [query, key, *module.parameters()])


@pytest.mark.parametrize("score", ["scaled", "additive"])
def test_whatever_padding_holds(score: str) -> None:
    module = Attention(SCORES[score]()).double()
    key = torch.randn(3, 7, module.score.expects()[1] or 4, dtype=torch.float64)
    query = states(3, 1, 4)
    clean = module.remember(key, lengths=[7, 2, 0]).read(query)
    for row, count in enumerate((7, 2, 0)):
        key[row, count:] = torch.nan
    key.requires_grad_()
    out = module.remember(key, lengths=[7, 2, 0]).read(query)
    torch.testing.assert_close(out.context, clean.context)
    out.context.sum().backward()
    assert torch.isfinite(key.grad).all() and torch.isfinite(query.grad).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in module.parameters())


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=str)
def test_bfloat16_autocast_stays_near(score: str, normalizer: Normalizer) -> None:
    module = Attention(SCORES[score](), normalizer=normalizer)
    query, key, value = torch.randn(3, 1, 4), torch.randn(3, 7, module.score.expects()[1] or 4), torch.randn(3, 7, 2)
    query.requires_grad_()
    exact = module.remember(key, value, [7, 2, 0]).read(query, weights=True)
    with torch.autocast("cpu", torch.bfloat16):
        near = module.remember(key, value, [7, 2, 0]).read(query, weights=True)
    torch.testing.assert_close(near.context.float(), exact.context, rtol=0.05, atol=0.08)
    torch.testing.assert_close(near.weights.float(), exact.weights, rtol=0.05, atol=0.05)
    (gradient,) = torch.autograd.grad(near.context.float().sum(), query)
    (expected,) = torch.autograd.grad(exact.context.sum(), query)
    torch.testing.assert_close(gradient, expected, rtol=0.1, atol=0.15)


@pytest.mark.parametrize("score", ["scaled", "additive"])
def test_autocast_leaves_energies_and_weights_wide(score: str) -> None:
    """One query sees what two see: products of energies in float32, weights that add up to 1 in float32."""
    module = Attention(SCORES[score]())
    query, key = torch.randn(3, 1, 4), torch.randn(3, 7, module.score.expects()[1] or 4)
    with torch.autocast("cpu", torch.bfloat16):
        memory = module.remember(key)
        one, two = (memory.read(query.expand(3, count, 4), weights=True).weights for count in (1, 2))
    assert one.dtype == two.dtype == torch.float32
    torch.testing.assert_close(one, two[:, :1])


@pytest.mark.parametrize("score", ["scaled", "additive", "cosine"])
def test_half_precision_is_that_of_the_reference(score: str) -> None:
    module = Attention(SCORES[score]()).bfloat16()
    query, key = torch.randn(3, 1, 4).bfloat16(), torch.randn(3, 7, module.score.expects()[1] or 4).bfloat16()
    mine = module.remember(key, lengths=[7, 2, 0]).read(query, weights=True)
    theirs = by_reference(query, key, key, module.score, Softmax(), [7, 2, 0])
    assert mine.context.dtype == torch.bfloat16
    torch.testing.assert_close(mine.context, theirs.context, rtol=0.01, atol=0.01)
    torch.testing.assert_close(mine.weights, theirs.weights.to(mine.weights.dtype), rtol=0.01, atol=0.01)


def test_weights_are_given_only_when_asked_for() -> None:
    memory = Attention().remember(torch.randn(2, 7, 4))
    assert memory.read(torch.randn(2, 1, 4)).weights is None
    assert memory.read(torch.randn(2, 1, 4), weights=True).weights is not None


def test_what_it_refuses() -> None:
    class Own(Score):
        def energies(self, query: Tensor, key: Tensor) -> Tensor:
            return query @ key.mT

    one, key = states(2, 1, 4), states(2, 7, 4)
    assert refusal(Attention(Dot()).remember(key), one) is None
    assert "no family" in (refusal(Attention(Own()).remember(key), one) or "")
    assert "chooses one key" in (refusal(Attention(normalizer=Hard()).remember(key), one) or "")
    assert refusal(Attention(dropout=0.1).remember(key), one) == "dropout"
    assert refusal(Attention(dropout=0.1).eval().remember(key), one) is None
    assert "hides keys" in (refusal(Attention(pattern=Window(1)).remember(key), one) or "")
    assert "hides keys" in (refusal(Attention(pattern=Causal()).remember(key), one, position=5) or "")
    assert refusal(Attention(pattern=Causal()).remember(key), one, position=6) is None
    assert "a bias" in (refusal(Attention().remember(key), one, bias=torch.zeros(1, 7)) or "")
    assert "at most 1 with gradients" in (refusal(Attention().remember(key), states(2, 2, 4)) or "")
    with torch.no_grad():
        memory = Attention().remember(key)
        assert refusal(memory, states(2, MAX_QUERIES, 4)) is None
        assert "17 queries per row" in (refusal(memory, states(2, MAX_QUERIES + 1, 4)) or "")
    request = requests.read(one, key, key, CallOptions(Dot(), Full(), Softmax()))
    assert "not those of a memory" in (FewQueries().refuse(request) or "")


@pytest.mark.parametrize("score", SCORES)
def test_what_is_asked_for_does_not_change_the_context(score: str) -> None:
    """Bit for bit: the plan is the same."""
    module = Attention(SCORES[score]())
    query, key = torch.randn(3, 1, 4), torch.randn(3, 7, module.score.expects()[1] or 4)
    memory = module.remember(key, lengths=[7, 2, 0])
    plain = memory.read(query).context
    for options in ({"weights": True}, {"top": 2}, {"lse": True}, {"weights": True, "top": 3, "lse": True}):
        assert torch.equal(memory.read(query, **options).context, plain)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "module", [Attention(pattern=Window(1)), Attention(normalizer=Hard()), Attention()], ids=["window", "hard", "full"]
)
def test_a_single_query_among_others_sees_the_same(module: Attention) -> None:
    """By whichever way it is read: several queries take the other one."""
    module = module.double()
    query, key = states(3, 4, 4), states(3, 7, 4)
    memory = module.remember(key, lengths=[7, 3, 2])
    whole = memory.read(query, weights=True)
    for t in range(4):
        step = memory.read(query[:, t : t + 1], position=t, weights=True)
        torch.testing.assert_close(step.context, whole.context[:, t : t + 1])
        torch.testing.assert_close(step.weights, whole.weights[:, t : t + 1])


def test_bad_input_is_named() -> None:
    memory = Attention(Additive(4, 6, 5)).remember(torch.zeros(2, 7, 6))
    with pytest.raises(ValueError, match=r"query: expected 4 features for Additive, got \[2, 1, 9\]"):
        memory.read(torch.zeros(2, 1, 9))
    with pytest.raises(ValueError, match=r"query, key: expected leading dims that broadcast, got \[3\] and \[2\]"):
        memory.read(torch.zeros(3, 1, 4))
    with pytest.raises(ValueError, match="query: expected 4 features for Dot"):
        Attention("dot").remember(torch.zeros(2, 7, 4)).read(torch.zeros(2, 1, 3))
