"""Hard attention's three estimators: what is chosen, and the gradients that are stated for them."""

import pytest
import torch
from torch import Tensor

from regard import Attention, Hard, Softmax, Strided, Window, attention

PATTERNS = ["full", "window(30)", "window(5) | strided(9)"]


def states(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_takes_the_argmax_unless_told_to_sample(pattern: str) -> None:
    query, key, value = states(150, 4), states(150, 4), states(150, 3)
    soft = attention(query, key, value, pattern=pattern, weights=True)
    assert soft.weights is not None
    for hard in (Hard(), Hard("gumbel"), Hard("reinforce")):
        out = attention(query, key, value, pattern=pattern, normalizer=hard)
        assert out.chosen is not None and torch.equal(out.chosen, soft.weights.argmax(-1))
        assert torch.equal(out.context, value[out.chosen])
        torch.testing.assert_close(out.log_probability, soft.weights.amax(-1).log())


@pytest.mark.parametrize("pattern", PATTERNS)
def test_straight_through_has_the_gradient_of_softmax_for_the_energies(pattern: str) -> None:
    """The weights' gradient is the softmax's; the values' is that of the choice."""
    query, key, value, grad = states(150, 4), states(150, 4), states(150, 3), torch.randn(150, 3).double()
    out = attention(query, key, value, pattern=pattern, normalizer=Hard(temperature=0.7))
    result = torch.autograd.grad((out.context * grad).sum(), (query, key, value))
    soft = attention(query, key, value.detach(), pattern=pattern, normalizer=Softmax(0.7)).context
    expected = torch.autograd.grad((soft * grad).sum(), (query, key))
    torch.testing.assert_close(result[:2], expected)
    assert out.chosen is not None
    torch.testing.assert_close(result[2], torch.zeros_like(value).index_add(0, out.chosen, grad))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_gumbel_has_the_gradient_of_the_relaxed_sample(pattern: str) -> None:
    query, key, value, grad = states(150, 4), states(150, 4), states(150, 3), torch.randn(150, 3).double()
    hard = Hard("gumbel", temperature=0.5, sample=True)

    def run(**extra):  # type: ignore[no-untyped-def]
        generator = torch.Generator().manual_seed(6)
        return attention(query, key, value, pattern=pattern, normalizer=hard, generator=generator, **extra)

    out = run(weights=True)
    assert out.weights is not None and out.chosen is not None
    assert torch.equal(out.weights.argmax(-1), out.chosen)
    through_context = torch.autograd.grad((out.context * grad).sum(), (query, key), retain_graph=True)
    through_weights = torch.autograd.grad((out.weights * (grad @ value.detach().T)).sum(), (query, key))
    torch.testing.assert_close(through_context, through_weights)
    assert any(g.abs().sum() > 0 for g in through_context)


@pytest.mark.parametrize("estimator", ["gumbel", "reinforce"])
@pytest.mark.parametrize("pattern", ["full", "window(140)", "strided(20)"])
def test_samples_come_from_softmax(estimator: str, pattern: str) -> None:
    query = states(1, 4).detach().expand(4000, 150, 4)
    key, value = states(150, 4).detach(), states(150, 2).detach()
    hard = Hard(estimator, sample=True)  # type: ignore[arg-type]
    out = attention(query[:, :2], key, value, pattern=pattern, normalizer=hard, generator=torch.Generator())
    soft = attention(query[0, :2], key, value, pattern=pattern, weights=True)
    assert out.chosen is not None and soft.weights is not None
    for row in range(2):
        fraction = torch.bincount(out.chosen[:, row], minlength=150) / 4000
        assert (fraction - soft.weights[row]).abs().max() < 0.03
        assert (fraction[soft.weights[row] == 0] == 0).all()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_reinforce_gives_the_energies_no_gradient_from_the_context(pattern: str) -> None:
    query, key, value = states(150, 4), states(150, 4), states(150, 3)
    out = attention(query, key, value, pattern=pattern, normalizer=Hard("reinforce", sample=True))
    grads = torch.autograd.grad(out.context.sum(), (query, key, value), allow_unused=True)
    assert all(grad is None or (grad == 0).all() for grad in grads[:2])
    assert grads[2] is not None and grads[2].abs().sum() > 0


def test_reinforce_is_right_in_expectation() -> None:
    """E[reward · ∇ log p] = ∇ E[reward], on three keys with a reward for each."""
    torch.manual_seed(1)
    query, key = states(1, 2), states(3, 2)
    reward = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    exact = torch.autograd.grad((query @ key.T / 2**0.5).softmax(-1) @ reward, query)[0]
    many = 100_000
    out = attention(
        query.expand(many, 1, 2), key, key, normalizer=Hard("reinforce", sample=True), generator=torch.Generator()
    )
    assert out.chosen is not None and out.log_probability is not None
    estimate = torch.autograd.grad((reward[out.chosen] * out.log_probability).sum() / many, query)[0]
    torch.testing.assert_close(estimate, exact, atol=0.02, rtol=0.0)


def test_modules_sample_in_training_only() -> None:
    module = Attention(normalizer=Hard("gumbel"), pattern=Window(60) | Strided(9))
    query = torch.randn(150, 4) * 0.1
    module.train()
    first, second = module(query, query).chosen, module(query, query).chosen
    assert not torch.equal(first, second)
    module.eval()
    assert torch.equal(module(query, query).chosen, module(query, query).chosen)


def test_a_key_that_many_choose_gets_an_exact_gradient_in_16_bits() -> None:
    query, key = torch.ones(1, 2000, 4), torch.zeros(1, 2, 4)
    value = torch.zeros(1, 2, 4, dtype=torch.bfloat16, requires_grad=True)
    out = attention(query.bfloat16(), key.bfloat16(), value, normalizer=Hard("reinforce"))
    (gradient,) = torch.autograd.grad(out.context.sum(), value)
    assert gradient[0, 0].tolist() == [2000.0] * 4 and not gradient[0, 1].any()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_context_may_be_changed_in_place(pattern: str) -> None:
    query, key, value = states(150, 4), states(150, 4), states(150, 3)
    out = attention(query, key, value, pattern=pattern, normalizer=Hard())
    out.context.add_(1).sum().backward()  # type: ignore[no-untyped-call]
    assert query.grad is not None and value.grad is not None
