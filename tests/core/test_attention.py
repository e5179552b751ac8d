"""The rules of `attention`: shapes, masks, empty rows, padding, dropout, dtypes, and the module."""

import pytest
import torch
from torch import Tensor

from regard import (
    Additive,
    Attention,
    Causal,
    Cosine,
    Entmax,
    Entmax15,
    Full,
    Global,
    Hard,
    Score,
    Softmax,
    Sparsemax,
    Strided,
    Window,
    attention,
    plan,
)

PATTERNS = [Full(), Causal(), Window(20), Strided(7), Window(10) | Strided(9) | Global([3])]
NORMALIZERS = [Softmax(), Sparsemax(), Entmax15(), Hard()]


def states(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_three_lines_of_the_definition() -> None:
    query, key, value = states(5, 4), states(6, 4), states(6, 3)
    weights = (query @ key.T / 2).softmax(-1)
    out = attention(query, key, value, weights=True)
    torch.testing.assert_close(out.weights, weights)
    torch.testing.assert_close(out.context, weights @ value)


def test_what_was_not_asked_for_is_none() -> None:
    out = attention(states(5, 4), states(6, 4), states(6, 3))
    extras = (out.weights, out.top, out.lse, out.chosen, out.log_probability)
    assert all(extra is None for extra in extras)


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_leading_dims_broadcast(pattern, normalizer) -> None:
    query, key, value = states(2, 1, 150, 4), states(3, 140, 4), states(1, 140, 4)
    wider = [x.expand(2, 3, *x.shape[-2:]) for x in (query, key, value)]
    out = attention(query, key, value, pattern=pattern, normalizer=normalizer, weights=True)
    expected = attention(*wider, pattern=pattern, normalizer=normalizer, weights=True)
    assert out.context.shape == (2, 3, 150, 4) and out.weights is not None and out.weights.shape == (2, 3, 150, 140)
    torch.testing.assert_close(out.context, expected.context)


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_rows_with_nothing_to_look_at(pattern, normalizer) -> None:
    query, key, value = states(2, 150, 4), states(2, 150, 4), states(2, 150, 4)
    soft = isinstance(normalizer, Softmax)
    out = attention(
        query, key, value, pattern=pattern, normalizer=normalizer, lengths=[0, 150], weights=True, top=2, lse=soft
    )
    assert (out.context[0] == 0).all() and (out.context[1] != 0).any()
    assert out.weights is not None and (out.weights[0] == 0).all()
    assert out.top is not None and (out.top.positions[0] == -1).all() and (out.top.weights[0] == 0).all()
    if soft:
        assert out.lse is not None and (out.lse[0] == -torch.inf).all()
    if out.chosen is not None:
        assert (out.chosen[0] == -1).all()
        assert out.log_probability is not None and (out.log_probability[0] == 0).all()
    (out.context.sum() + out.weights.square().sum()).backward()
    for x in (query, key, value):
        assert x.grad is not None and torch.isfinite(x.grad).all() and (x.grad[0] == 0).all()


@pytest.mark.parametrize("hiding", ["lengths", "allowed keys", "allowed pairs"])
@pytest.mark.parametrize("score", ["scaled_dot", Cosine(learned=True).double(), Additive(4, 4, 5).double()], ids=str)
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_padding_never_reaches_the_result(pattern, score: Score | str, hiding: str) -> None:
    query, key, value = (states(2, 140, 4) for _ in range(3))
    masks: dict = {"lengths": torch.tensor([100, 140])}
    real = torch.arange(140) < masks["lengths"][:, None]
    if hiding == "allowed keys":
        masks = {"allowed": real[:, None]}
    elif hiding == "allowed pairs":
        masks = {"allowed": real[:, None] & (torch.rand(2, 140, 140) < 0.9)}
    clean = attention(query, key, value, score=score, pattern=pattern, **masks).context
    dirty_key, dirty_value = (
        torch.where(real[..., None], x, torch.nan).detach().requires_grad_() for x in (key, value)
    )
    out = attention(query, dirty_key, dirty_value, score=score, pattern=pattern, weights=True, **masks)
    assert torch.equal(out.context, clean)
    assert out.weights is not None and torch.isfinite(out.weights).all()
    parameters = [] if isinstance(score, str) else list(score.parameters())
    grads = torch.autograd.grad(out.context.square().sum(), [query, dirty_key, dirty_value, *parameters])
    assert all(torch.isfinite(grad).all() for grad in grads)
    assert all((grad[~real] == 0).all() for grad in grads[1:3])


def test_nan_in_a_visible_key_is_the_callers() -> None:
    key = states(6, 4).detach()
    key[2] = torch.nan
    assert attention(states(5, 4), key, states(6, 3)).context.isnan().all()


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_position_is_where_the_first_query_stands(pattern) -> None:
    query, key, value = states(150, 4), states(150, 4), states(150, 4)
    whole = attention(query, key, value, pattern=pattern).context
    for position in (0, 3, 149):
        some = attention(query[position:], key, value, pattern=pattern, position=position).context
        torch.testing.assert_close(some, whole[position:])


def test_no_queries_and_no_keys() -> None:
    assert attention(states(2, 0, 4), states(2, 6, 4), states(2, 6, 3)).context.shape == (2, 0, 3)
    for normalizer in NORMALIZERS:
        out = attention(states(2, 5, 4), states(2, 0, 4), states(2, 0, 3), normalizer=normalizer, weights=True, top=1)
        assert out.context.shape == (2, 5, 3) and (out.context == 0).all()
        assert out.weights is not None and out.weights.shape == (2, 5, 0)
    assert attention(states(0, 5, 4), states(0, 6, 4), states(0, 6, 3), pattern="window(1)").context.shape == (0, 5, 3)


def test_bias_of_minus_infinity_hides() -> None:
    query, key, value = states(5, 4), states(6, 4), states(6, 4)
    hidden = torch.rand(5, 6) < 0.4
    hidden[1] = True
    bias = torch.zeros(5, 6, dtype=torch.float64).masked_fill(hidden, -torch.inf)
    for pattern in (Full(), Window(3)):
        out = attention(query, key, value, pattern=pattern, bias=bias)
        torch.testing.assert_close(out.context, attention(query, key, value, pattern=pattern, allowed=~hidden).context)
        assert (out.context[1] == 0).all()


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_asking_never_changes_the_context(pattern) -> None:
    query, key, value = (torch.randn(2, 200, 8) for _ in range(3))
    plain = attention(query, key, value, pattern=pattern).context
    assert torch.equal(attention(query, key, value, pattern=pattern, weights=True, top=4, lse=True).context, plain)


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_weights_times_value_is_the_context(pattern) -> None:
    query, key, value = (states(150, 4) for _ in range(3))
    for normalizer in NORMALIZERS:
        out = attention(query, key, value, pattern=pattern, normalizer=normalizer, weights=True)
        assert out.weights is not None
        torch.testing.assert_close(out.weights @ value, out.context)


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    query, key, value = states(300, 4), states(300, 4), torch.eye(300, dtype=torch.float64)
    for pattern in (Full(), Window(140)):
        generator = torch.Generator().manual_seed(4)
        out = attention(query, key, value, pattern=pattern, dropout=0.25, weights=True, generator=generator)
        assert out.weights is not None
        seen = out.weights > 0
        dropped = (out.context == 0) & seen
        assert abs(float(dropped.sum() / seen.sum()) - 0.25) < 0.01
        remaining = seen & ~dropped
        torch.testing.assert_close(out.context[remaining], out.weights[remaining] / 0.75)


def test_dropout_follows_the_generator() -> None:
    query, key, value = (torch.randn(200, 4) for _ in range(3))

    def run(seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return attention(query, key, value, pattern="window(9)", dropout=0.5, generator=generator).context

    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(pattern, dtype: torch.dtype) -> None:
    inputs = [torch.randn(2, 150, 8).to(dtype).requires_grad_() for _ in range(3)]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    out, expected = attention(*inputs, pattern=pattern, weights=True), attention(*exact, pattern=pattern)
    assert out.context.dtype is dtype and out.weights is not None and out.weights.dtype is torch.float32
    torch.testing.assert_close(out.context.double(), expected.context, atol=0.03, rtol=0.03)
    out.context.sum().backward()
    expected.context.sum().backward()
    for mine, theirs in zip(inputs, exact, strict=True):
        assert mine.grad is not None and theirs.grad is not None
        torch.testing.assert_close(mine.grad.double(), theirs.grad, atol=0.05, rtol=0.05)


def test_autocast_computes_in_its_dtype() -> None:
    inputs = [torch.randn(2, 150, 8, requires_grad=True) for _ in range(3)]
    additive = Additive(8, 8, 8)
    for pattern in (Full(), Window(4)):
        for score in ("scaled_dot", additive):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                context = attention(*inputs, pattern=pattern, score=score).context
            assert context.dtype is torch.bfloat16
            context.float().sum().backward()
            exact = attention(*inputs, pattern=pattern, score=score).context
            torch.testing.assert_close(context.float(), exact, atol=0.05, rtol=0.05)


def test_a_score_of_ones_own_runs_on_the_reference() -> None:
    class Distance(Score):
        def energies(self, query: Tensor, key: Tensor) -> Tensor:
            return -torch.cdist(query, key)

    query, key, value = states(150, 4), states(150, 4), states(150, 4)
    assert plan(query, key, value, score=Distance(), pattern=Window(3)).kernel.name == "reference"
    out = attention(query, key, value, score=Distance(), pattern=Window(3), top=2, lse=True)
    energies = (-torch.cdist(query, key)).masked_fill(~Window(3).mask(150, 150), -torch.inf)
    torch.testing.assert_close(out.context, energies.softmax(-1) @ value)
    torch.testing.assert_close(out.lse, energies.logsumexp(-1))
    assert out.top is not None and torch.equal(out.top.positions[:, 0], energies.argmax(-1))


def test_top_breaks_ties_to_the_lower_position() -> None:
    same = torch.ones(150, 4)
    for pattern in (Full(), Window(3), Strided(10)):
        top = attention(same, same, same, pattern=pattern, top=3).top
        weights = attention(same, same, same, pattern=pattern, weights=True, top=3)
        assert top is not None and weights.top is not None
        assert torch.equal(top.positions, weights.top.positions)
        assert (top.positions.diff(dim=-1) > 0).all()


def test_module_takes_key_as_value_and_drops_only_in_training() -> None:
    module = Attention(Additive(4, 6, 5), "window(3)", "entmax15", dropout=0.5).double()
    query, key = states(5, 4), states(6, 6)
    module.eval()
    out = module(query, key)
    expected = attention(query, key, key, score=module.score, pattern=Window(3), normalizer=Entmax15()).context
    torch.testing.assert_close(out.context, expected)
    module.train()
    assert not torch.equal(module(query, key).context, out.context)
    assert {name for name, _ in module.named_parameters()} == {
        "score.query_weight",
        "score.key_weight",
        "score.vector",
    }


def test_module_keeps_nothing_between_calls() -> None:
    module = Attention(Additive(4, 4, 5))
    before = set(vars(module)), set(vars(module.score))
    module(torch.randn(5, 4), torch.randn(6, 4), weights=True)
    assert (set(vars(module)), set(vars(module.score))) == before


@pytest.mark.parametrize("shape", [(), (6,), (5, 1)])
def test_bias_and_allowed_of_few_dims(shape: tuple[int, ...]) -> None:
    query, key, value = states(2, 5, 4), states(2, 6, 4), states(2, 6, 4)
    bias, allowed = torch.randn(shape, dtype=torch.float64), torch.rand(shape) < 0.7
    out = attention(query, key, value, bias=bias, allowed=allowed)
    wider = attention(query, key, value, bias=bias.expand(5, 6), allowed=allowed.expand(5, 6))
    torch.testing.assert_close(out.context, wider.context)


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
@pytest.mark.parametrize("score", ["scaled_dot", "cosine"])
def test_energies_are_not_rounded_in_half_precision(pattern, score: str) -> None:
    """Large energies would be off by whole units."""
    inputs = [(torch.randn(2, 150, 32) * 6).bfloat16() for _ in range(3)]
    exact = [x.double() for x in inputs]
    out = attention(*inputs, pattern=pattern, score=score, weights=True, lse=True)
    expected = attention(*exact, pattern=pattern, score=score, weights=True, lse=True)
    tolerance = 0.05 if score == "cosine" else 0.002  # unit vectors are rounded to bfloat16
    torch.testing.assert_close(out.weights.double(), expected.weights, atol=tolerance, rtol=0)
    torch.testing.assert_close(out.lse.double(), expected.lse, atol=tolerance, rtol=1e-3)
    hard = attention(*inputs, pattern=pattern, score=score, normalizer="hard")
    assert hard.log_probability.max() <= 0


def test_cosine_of_long_vectors_in_float16() -> None:
    x = torch.randn(5, 512) * 15
    torch.testing.assert_close(
        Cosine().energies(x.half(), x.half()).float(), Cosine().energies(x, x), atol=0.01, rtol=0
    )


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda n: type(n).__name__)
def test_nan_in_a_query_stays_in_its_row(normalizer) -> None:
    query = states(150, 4).detach()
    query[3] = torch.nan
    key = states(150, 4)
    clean = attention(query.nan_to_num(), key, key, pattern="window(9)", normalizer=normalizer).context
    out = attention(query, key, key, pattern="window(9)", normalizer=normalizer).context
    rows = torch.arange(150) != 3
    torch.testing.assert_close(out[rows], clean[rows])


def test_strides_beyond_the_sequence_cost_nothing() -> None:
    query, key, value = states(300, 4), states(300, 4), states(300, 4)
    for pattern in ("strided(2000000000)", "strided(1000) & strided(1001) & causal"):
        torch.testing.assert_close(attention(query, key, value, pattern=pattern).context, value)


def test_a_plan_moves_no_random_numbers() -> None:
    x = torch.randn(30, 4)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    plan(x, x, x, dropout=0.5, normalizer=Hard("gumbel", sample=True))
    assert torch.equal(torch.rand(3), expected)


def test_results_are_of_one_dtype() -> None:
    x = torch.randn(20, 4)
    out = attention(x, x, x, bias=torch.zeros(20, 20, dtype=torch.float64), weights=True, lse=True)
    assert {t.dtype for t in (out.context, out.weights, out.lse)} == {torch.float32}


def test_a_normalizer_of_ones_own() -> None:
    class Squared(Entmax):
        """Positive energies squared, divided by their sum."""

        def weigh(self, energies: Tensor) -> Tensor:
            positive = energies.clamp(min=0).square()
            return positive / positive.sum(-1, keepdim=True).clamp(min=1e-9)

        def slope(self, weights: Tensor) -> Tensor:
            return weights.sqrt()

    query, key, value = states(150, 4), states(150, 4), states(150, 4)
    out = attention(query, key, value, normalizer=Squared(), pattern="window(9)", weights=True)
    torch.testing.assert_close(out.weights @ value, out.context)
